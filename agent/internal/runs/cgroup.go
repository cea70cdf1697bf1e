package runs

import (
	"time"

	"github.com/stallspan/stallspan/internal/monitor/follow"
)

// NewCgroup makes a cgroup for one run. It returns nil where that is not permitted: the run then shares the pressure of
// the cgroup that it is in.
func NewCgroup() *follow.Cgroup {
	group, err := follow.NewCgroup(ownRunPrefix())
	if err != nil {
		return nil
	}
	return group
}

// exitGrace is how long to wait for the program's processes to exit.
const exitGrace = 500 * time.Millisecond

// RemoveCgroup removes the cgroup, if there is one. A process that was left running in it keeps it.
func RemoveCgroup(group *follow.Cgroup) {
	if group != nil {
		_ = group.Remove(exitGrace)
	}
}
