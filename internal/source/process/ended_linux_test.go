package process

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// TestEnded follows this process and real children of it, which a signal stops, continues and kills, or which end by
// themselves, and that nothing waits for meanwhile.
func TestEnded(t *testing.T) {
	start := func(name string, args ...string) *exec.Cmd {
		c := exec.Command(name, args...)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
		return c
	}
	before := start("false")
	killed, fails := start("sleep", "60"), start("sh", "-c", "read x; exit 3")
	is := func(c *exec.Cmd, state byte) bool { s, ok := StatOf("/", c.Process.Pid); return ok && s.State == state }
	wait := func(what string, done func() bool) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); !done(); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("got nothing in 20 s, want that %s", what)
			}
		}
	}
	wait("false ends", func() bool { return is(before, 'Z') })

	s := New("/")
	t.Cleanup(s.Close)
	if err := s.Add("job", os.Getpid(), Options{}); err != nil {
		t.Fatal(err)
	}
	ends := func(c *exec.Cmd) (found *sample.Ended) {
		s.lookNow()
		out := read(t, s)
		for i := range out.Jobs[0].Ended {
			if e := &out.Jobs[0].Ended[i]; e.PID == c.Process.Pid {
				found = e
			}
		}
		return found
	}
	status := func(c *exec.Cmd) syscall.WaitStatus {
		if e := ends(c); e != nil {
			return syscall.WaitStatus(e.Status)
		}
		return 0
	}
	if got := ends(before); got == nil || got.At != 0 || syscall.WaitStatus(got.Status).ExitStatus() != 1 {
		t.Errorf("got %+v of what had ended, want its exit code and no time", got)
	}
	if got := ends(killed); got != nil {
		t.Errorf("got %+v of what runs", got)
	}
	_ = killed.Process.Signal(syscall.SIGSTOP)
	wait("the stop is seen", func() bool { return status(killed).Stopped() })
	_ = killed.Process.Signal(syscall.SIGCONT)
	wait("the process goes on", func() bool { return ends(killed) == nil })
	wait("its age shows", func() bool { // in hundredths of a second
		stat, ok := StatOf("/", killed.Process.Pid)
		return ok && duration(Uptime("/")) > duration(stat.Start)
	})
	_ = killed.Process.Kill()
	wait("the kill is seen", func() bool { return status(killed).Signaled() })
	if got := ends(killed); got.At == 0 || got.Lived <= 0 {
		t.Errorf("got %+v, want when it ended", got)
	}
	wait("the exit code is seen", func() bool { return status(fails).ExitStatus() == 3 })
}
