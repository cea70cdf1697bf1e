package trust

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A program may gain rights only where that is permitted, leaves no core, and has limits.
func TestCommandRights(t *testing.T) {
	for _, setuid := range []bool{true, false} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute+time.Second/2)
		defer cancel()
		c := NewCommand(ctx, "/bin/sh", "-c", "read go; ulimit -c; ulimit -t; ulimit -f; ulimit -Hn; "+
			"grep NoNewPrivs /proc/self/status")
		in, err := c.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		c.Stdout = &out
		if err := c.Launch(Rights{Setuid: setuid}); err != nil {
			t.Fatal(err)
		}
		_, _ = in.Write([]byte("go\n"))
		if err := c.Await(); err != nil {
			t.Error(err)
		}
		want := "0\n61\n2097152\n4096\nNoNewPrivs:\t" + map[bool]string{true: "0", false: "1"}[setuid] + "\n"
		if out.String() != want {
			t.Errorf("setuid %v: got %q, want %q", setuid, &out, want)
		}
	}
	if flag, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0); flag != 0 || err != nil {
		t.Errorf("this process: got no_new_privs %d, %v; want 0", flag, err)
	}
}

// What a program starts has its limit of CPU time, also outside of its group, where it is not killed with it.
func TestCommandLimitsWhatLeaves(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	var out bytes.Buffer
	c := NewCommand(ctx, "/bin/sh", "-c", "read go; setsid sh -c 'echo $$; while :; do :; done' & sleep 600")
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.Stdout, c.WaitDelay = &out, time.Second
	if err := c.Launch(Rights{}); err != nil {
		t.Skipf("needs sh: %v", err)
	}
	_, _ = in.Write([]byte("go\n"))
	_ = c.Await()
	child, err := strconv.Atoi(strings.TrimSpace(out.String()))
	if err != nil {
		t.Fatalf("got %q, want the ID of a process: %v", &out, err)
	}
	defer func() { _ = unix.Kill(child, unix.SIGKILL) }()
	for end := time.Now().Add(time.Minute); unix.Kill(child, 0) == nil && !isZombie(child); {
		time.Sleep(10 * time.Millisecond)
		if time.Now().After(end) {
			t.Fatalf("the process %d runs on, want that it ends after a second of CPU time", child)
		}
	}
}

// A child that the program leaves in its group is killed, and no group is killed later: its number may be another's.
func TestCommandLeavesNothing(t *testing.T) {
	var out bytes.Buffer
	c := NewCommand(t.Context(), "/bin/sh", "-c", "sleep 600 >/dev/null 2>&1 & echo $!")
	c.Stdout = &out
	if err := errors.Join(c.Launch(Rights{}), c.Await()); err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(out.String()))
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); unix.Kill(child, 0) == nil && !isZombie(child); {
		if time.Now().After(end) {
			t.Fatalf("the child %d runs on", child)
		}
		time.Sleep(time.Millisecond)
	}
	// Another program gets the group's number, as the kernel might give it.
	other := exec.Command("/bin/sleep", "600")
	other.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Process.Kill(); _ = other.Wait() }()
	c.Process = other.Process
	if err := c.Cancel(); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("got %v, want %v", err, os.ErrProcessDone)
	}
	if isZombie(other.Process.Pid) {
		t.Error("another group was killed")
	}
}

func isZombie(pid int) bool {
	text, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return strings.Contains(string(text), ") Z ")
}

func TestCommandIsKilled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := NewCommand(ctx, "/bin/sleep", "600")
	if err := c.Launch(Rights{}); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := c.Await(); err == nil {
		t.Error("got no error, want that it was killed")
	}
}
