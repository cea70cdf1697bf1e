package wrap

import (
	"os"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/monitor"
)

// The last reading of a program has all of its CPU time, and that of the children that it has waited for, although the
// reading before is up to an interval old.
func TestLastReadingHasAllCPUTime(t *testing.T) {
	m, err := monitor.New(monitor.Config{Interval: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	m.Start()
	defer m.Stop()
	const work = `work() { i=0; while [ $i -lt $1 ]; do i=$((i+1)); done; }; (work 150000); work 150000`
	signals := NewRelay(t.Context())
	defer signals.Stop()
	c, err := Start([]string{"sh", "-c", work}, os.Environ(), nil, signals, Hooks{Line: func([]byte) {}})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Jobs.Follow("program", c.Cmd.Process.Pid, "", false); err != nil {
		t.Fatal(err)
	}
	var counted time.Duration
	_, status := c.Wait(func() {
		m.Now()
		if jobs := m.Collect().Jobs.Jobs; len(jobs) == 1 {
			counted = jobs[0].CPUTime
		}
	})
	m.Jobs.Unfollow("program")
	// The program has worked for some milliseconds before it was followed. /proc counts in ticks of 10 ms.
	const slack = 40 * time.Millisecond
	spent := status.UserTime() + status.SystemTime()
	if spent < 2*slack || counted < spent-slack || counted > spent+slack {
		t.Errorf("got %v of CPU time, want the %v that the kernel reports at its end, within %v", counted, spent, slack)
	}
}
