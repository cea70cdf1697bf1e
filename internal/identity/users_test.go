package identity

import (
	"errors"
	"os/user"
	"testing"
	"time"

	"github.com/stallspan/stallspan/test/fixture"
)

// Users of services are named once these have answered. Others have a number.
func TestUsersOfServices(t *testing.T) {
	answer := make(chan bool)
	calls := 0
	u := users{root: "/", lookUp: func(uid string) (*user.User, error) {
		calls++
		if <-answer {
			return &user.User{Username: "ldap-" + uid}, nil
		}
		return nil, errors.New("no such user")
	}}
	const far = 3_999_999_000 // in no /etc/passwd
	if got := u.name(far); got != "3999999000" {
		t.Errorf("before the answer: got %q, want the number", got)
	}
	if got := u.name(0); got != "root" {
		t.Errorf("meanwhile: got %q, want root", got)
	}
	answer <- true
	u.asking.Wait(time.Minute)
	if got := u.name(far); got != "ldap-3999999000" {
		t.Errorf("after the answer: got %q, want ldap-3999999000", got)
	}
	u.name(far + 1)
	answer <- false
	u.asking.Wait(time.Minute)
	for range 2 {
		if got := u.name(far + 1); got != "3999999001" {
			t.Errorf("without a name: got %q, want the number", got)
		}
	}
	if u.asking.Wait(time.Minute); calls != 2 {
		t.Errorf("got %d questions, want 2: answers are kept", calls)
	}
	for i := range int64(3 * maxOthers) {
		go func() { answer <- true }()
		u.ask(i, "x")
	}
	if len(u.others) > maxOthers {
		t.Errorf("got %d users, want at most %d", len(u.others), maxOthers)
	}
}

// The users of a container are not those of the machine.
func TestUsersBelowRoot(t *testing.T) {
	root := machine(t)
	u := users{root: root, lookUp: func(string) (*user.User, error) { panic("the container's users were asked for") }}
	for uid, want := range map[int64]string{0: "root", 1000: "ada", 1001: "1001", -1: ""} {
		if got := u.name(uid); got != want {
			t.Errorf("user %d: got %q, want %q", uid, got, want)
		}
	}
	fixture.Write(t, root, "etc/passwd", []byte("bob:x:1001:1::/:/\nnone\n:x:5::\na:x:b:c:d\n"))
	u.looked, u.stamp = time.Time{}, time.Time{}
	for uid, want := range map[int64]string{1000: "1000", 1001: "bob"} {
		if got := u.name(uid); got != want {
			t.Errorf("later, user %d: got %q, want %q", uid, got, want)
		}
	}
	u.asking.Wait(time.Minute)
}
