package baseline

import (
	"strconv"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/window"
)

func epochOf(client, run string) Key {
	return KeyOf(&window.Report{Window: window.Window{Kind: window.Epoch, Run: run, Client: client}}, "")
}

// What one client announces changes no baseline of another.
func TestClientsAreApart(t *testing.T) {
	all := records{}
	for range MaxCount {
		all.learn(observation{epochOf("uid 1000", "llama"), time.Millisecond, false, time.Unix(1, 0)})
	}
	for _, key := range []Key{epochOf("", "llama"), epochOf("uid 1001", "llama")} {
		if all[key] != nil {
			t.Errorf("%s: got the baseline of another client", key)
		}
	}
	key := epochOf("uid 1000", "a/b] c")
	if key.Client() != "uid 1000" || key.Kind() != "epoch" || key.Name() != "a/b] c" {
		t.Errorf("got the client %q, kind %q and name %q of %s", key.Client(), key.Kind(), key.Name(), key)
	}
	if key := epochOf("", "[x] y"); key.Client() != "" || key.Name() != "[x] y" {
		t.Errorf("a name in brackets: got the client %q, name %q", key.Client(), key.Name())
	}
	// No name of a client can be that of another.
	if a, b := epochOf("x] epoch/y", "z"), epochOf("x", "y"); a == b || a.Client() == b.Client() {
		t.Errorf("got %s and %s, want different clients", a, b)
	}
}

// Made-up names evict no key of another client, nor any of this program's user.
func TestClientsEvictTheirOwn(t *testing.T) {
	all := records{}
	add := func(client, run string, at int64) {
		all.learn(observation{epochOf(client, run), time.Second, false, time.Unix(at, 0)})
		all.trim()
	}
	add("", "ours", 1)
	add("uid 1001", "victim", 2)
	for i := range int64(300) {
		add("uid 1000", "run "+strconv.FormatInt(i, 10), 10+i)
	}
	if len(all) != 2+MaxEach || all[epochOf("uid 1001", "victim")] == nil || all[epochOf("uid 1000", "run 299")] == nil {
		t.Errorf("got %d keys, want %d: all of others, and the newest %d of one client", len(all), 2+MaxEach, MaxEach)
	}
	for i := range int64(300) { // of as many users in one container
		add("uid "+strconv.FormatInt(i, 10)+" in container 0123456789ab", "run", 400+i)
	}
	if len(all) != 2+2*MaxEach || all[epochOf("uid 1001", "victim")] == nil {
		t.Errorf("got %d keys, want %d: those of a container are of one client", len(all), 2+2*MaxEach)
	}
	for c := range int64(MaxKeys/MaxEach + 10) {
		for i := range int64(MaxEach) {
			all.learn(observation{epochOf("container "+strconv.FormatInt(c, 10), strconv.FormatInt(i, 10)), time.Second,
				false, time.Unix(1000+c, 0)})
		}
	}
	all.trim()
	if len(all) != MaxKeys || all[epochOf("", "ours")] == nil {
		t.Errorf("got %d keys, want %d with that of this program's user", len(all), MaxKeys)
	}
}
