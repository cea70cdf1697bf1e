package monitor

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/window"
)

// pipeline starts a loop of bash that writes lines, and one that only reads them. It returns the process that reads.
func pipeline(t *testing.T, loop string) (reader int) {
	t.Helper()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("needs bash")
	}
	name := filepath.Join(t.TempDir(), "reader")
	c := exec.Command("bash", "-c", "while :; do "+loop+"; echo; done | "+
		`(echo $BASHPID >"$0.part"; mv "$0.part" "$0"; while read -r; do :; done)`, name)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL); _ = c.Wait() })
	for range 1000 {
		if text, err := os.ReadFile(name); err == nil {
			if reader, err = strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
				return reader
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("the pipeline did not start")
	return 0
}

// A program waits for the one that feeds it. Its time is what that one did.
func TestTimeOfAFedJob(t *testing.T) {
	m, err := New(Config{Interval: 20 * time.Millisecond, Schedule: true})
	if err != nil {
		t.Fatal(err)
	}
	m.Start()
	t.Cleanup(m.Stop)
	for _, test := range []struct {
		name, loop string
		works      bool // the feeder
	}{
		{"the feeder works", "for ((i = 0; i < 30000; i++)); do :; done", true},
		{"the feeder sleeps", "sleep 0.2", false},
	} {
		reader := pipeline(t, test.loop)
		job := m.Jobs.JobOf(reader)
		if err := m.Jobs.FollowOwn(job, reader); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(10 * time.Second); len(m.readings.Processes(job)) < 2; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: it is not followed after ten seconds", test.name)
			}
		}
		time.Sleep(500 * time.Millisecond) // its threads, too
		w := window.Window{Kind: window.Custom, Name: test.name, Job: job, PID: reader}
		id, err := m.Windows.Begin(w, m.Now())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		r, err := m.Windows.End(id, m.Now())
		if err != nil {
			t.Fatal(err)
		}
		m.Jobs.Unfollow(job)
		if r.Evidence != window.FromSchedule {
			t.Skipf("needs BPF: %s", r.NoSchedule)
		}
		share := r.CPU.Seconds() / r.Duration().Seconds()
		if test.works != (share > 0.7) || !test.works && r.Other.Seconds() < 0.5*r.Duration().Seconds() {
			t.Errorf("%s: got %.2f of the time on a CPU, and %v of %v other", test.name, share, r.Other, r.Duration())
		}
	}
}
