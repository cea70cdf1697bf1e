//go:build linux && (amd64 || arm64)

package schedule

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/sample"
)

const plainUser = 65534 // user and group

// openedFor returns a source for an owner.
func openedFor(t *testing.T, owner Owner) *Source {
	t.Helper()
	needs(t)
	if os.Geteuid() != 0 {
		t.Skip("starting programs of other users needs root")
	}
	s, err := NewFrom(Local(""), &owner)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// sleepProgram copies sleep to where every user can run it, with a mode and an owner.
func sleepProgram(t *testing.T, mode uint32, uid, gid int) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "schedule")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	from, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "sleep")
	if err := errors.Join(os.WriteFile(path, text, 0o755), os.Chown(path, uid, gid), unix.Chmod(path, mode),
		os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	return path
}

// runAs runs a shell script of a user, followed from its first line on, and returns all events.
func runAs(t *testing.T, s *Source, uid, gid uint32, script string) []sample.ThreadEvent {
	t.Helper()
	cmd := exec.Command("sh", "-c", "read line; "+script)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: gid}}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := s.Follow("job", []int{cmd.Process.Pid}); err != nil {
		t.Error(err)
	}
	_, _ = io.WriteString(stdin, "\n")
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	return readAll(t, s)
}

// naps counts the pauses in sleeps, and the ends of threads.
func naps(events []sample.ThreadEvent) (naps, ends int) {
	for _, e := range events {
		switch {
		case e.Kind == sample.ThreadOut && e.State == sample.StateDead:
			ends++
		case e.Kind == sample.ThreadOut && e.Syscall == unix.SYS_CLOCK_NANOSLEEP && e.State != sample.StateReady:
			naps++
		}
	}
	return naps, ends
}

// The programs of a user that run with other rights give no events, and are reported to have ended.
func TestOwner(t *testing.T) {
	for _, c := range []struct {
		name     string
		uid, gid uint32
		mode     uint32
		naps     int
		ends     int
	}{
		{"an own program", plainUser, plainUser, 0o755, 1, 2},
		{"a setuid program", plainUser, plainUser, 0o4755, 0, 2},
		{"a setgid program", plainUser, plainUser, 0o2755, 0, 2},
		{"a program of root", 0, 0, 0o755, 0, 0},
		{"a program of another group", plainUser, 7, 0o755, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := sleepProgram(t, c.mode, 0, 0)
			s := openedFor(t, Owner{plainUser, plainUser})
			events := runAs(t, s, c.uid, c.gid, path+" 0.05; true")
			if naps, ends := naps(events); naps != c.naps || ends != c.ends || c.ends == 0 && len(events) > 0 {
				t.Errorf("got %d sleeps and %d ends in %d events, want %d and %d", naps, ends, len(events), c.naps, c.ends)
				show(t, events)
			}
		})
	}
}

// A program with a capability gives no events.
func TestOwnerWithCapability(t *testing.T) {
	s := openedFor(t, Owner{plainUser, plainUser})
	path := sleepProgram(t, 0o755, 0, 0)
	// CAP_NET_RAW, permitted and effective (struct vfs_cap_data, version 2).
	attribute := []byte{1, 0, 0, 2, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	if err := unix.Setxattr(path, "security.capability", attribute, 0); err != nil {
		t.Skipf("set a capability on a file: %v", err)
	}
	events := runAs(t, s, plainUser, plainUser, path+" 0.05; true")
	if naps, ends := naps(events); naps != 0 || ends != 2 {
		t.Errorf("got %d sleeps and %d ends, want none and 2", naps, ends)
		show(t, events)
	}
}

// What a program with other rights runs is not followed, even where it has given them up.
func TestOwnerAgainAfterSetuidProgram(t *testing.T) {
	s := openedFor(t, Owner{plainUser, plainUser})
	setpriv, err := exec.LookPath("setpriv")
	if err != nil {
		t.Skip("this test needs setpriv")
	}
	plain := sleepProgram(t, 0o755, 0, 0)
	privileged := filepath.Join(filepath.Dir(plain), "setpriv")
	text, err := os.ReadFile(setpriv)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(privileged, text, 0o755), unix.Chmod(privileged, 0o4755)); err != nil {
		t.Fatal(err)
	}
	again := fmt.Sprintf("exec setpriv --reuid %d --regid %d --clear-groups %s 0.05", plainUser, plainUser, plain)
	events := runAs(t, s, plainUser, plainUser, fmt.Sprintf("%s --ruid 0 sh -c 'sleep 0.01; %s'; true", privileged, again))
	if naps, _ := naps(events); naps != 0 {
		t.Errorf("got %d sleeps, want none", naps)
		show(t, events)
	}
}
