package lend

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/test/fixture"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const plainUser = 65534 // user and group

func opener(m *fixture.Scheduler) Opener { return func(*Owner) (Source, error) { return m, nil } }

func needsRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("starting processes of other users needs root")
	}
}

// program starts a program as a user. It ends with the test.
func program(t *testing.T, uid, gid uint32, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if os.Geteuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uid, Gid: gid}
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_, _ = cmd.Process.Wait() // a test may have waited
	})
	return cmd
}

func sleeper(t *testing.T, uid, gid uint32) int {
	t.Helper()
	return program(t, uid, gid, "sleep", "600").Process.Pid
}

// loan returns a loan for a user, from a source.
func loan(t *testing.T, peer Peer, m *fixture.Scheduler) *Loan {
	t.Helper()
	l, err := NewLender(opener(m)).Admit(peer)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	if err := l.start(); err != nil {
		t.Fatal(err)
	}
	return l
}

// got returns the events in the loan's next frame.
func got(t *testing.T, n *Loan) []sample.ThreadEvent {
	t.Helper()
	var s *sample.Schedule
	err := n.frame(func(frame []byte) (err error) {
		s, _, err = decode(frame[lengthBytes:], 0)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return s.Events
}

func obey(t *testing.T, n *Loan, o Order) {
	t.Helper()
	if err := n.obey(&o); err != nil {
		t.Fatal(err)
	}
}

func in(pid, waker int) sample.ThreadEvent {
	return sample.ThreadEvent{Kind: sample.ThreadIn, TID: pid, PID: pid, Woken: 1, Waker: waker, WakerPID: waker,
		WakerKind: sample.UserThread}
}

func pidsOf(events []sample.ThreadEvent) (pids []int) {
	for i := range events {
		pids = append(pids, events[i].PID)
	}
	return pids
}
