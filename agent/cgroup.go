package agent

import (
	"fmt"
	"os"
	"time"

	"github.com/stallspan/stallspan/internal/monitor"
)

// newCgroup makes a cgroup for one run. Where that is not permitted it gives nil: the run then shares the pressure of the
// cgroup it is in.
func newCgroup() *monitor.Cgroup {
	group, err := monitor.NewCgroup(fmt.Sprintf("stallspan-run-%d-", os.Getpid()))
	if err != nil {
		return nil
	}
	return group
}

// leaving is for how long processes that the program has started may still be on their way out.
const leaving = 500 * time.Millisecond

// removeCgroup takes it away, where there is one. A process that was left running in it keeps it.
func removeCgroup(group *monitor.Cgroup) {
	if group != nil {
		_ = group.Remove(leaving)
	}
}
