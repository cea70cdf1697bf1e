//go:build !linux

package agent

import (
	"syscall"

	"github.com/stallspan/stallspan/internal/monitor/follow"
)

// inCgroup changes nothing: only Linux has cgroups, and none is made elsewhere.
func inCgroup(*follow.Cgroup) *syscall.SysProcAttr { return nil }

// awaitExit returns at once: the counters of a child that has exited are read on Linux only.
func awaitExit(int) {}
