//go:build !linux

package agent

import (
	"syscall"

	"github.com/stallspan/stallspan/internal/monitor"
)

// inCgroup changes nothing: only Linux has cgroups, and none is made elsewhere.
func inCgroup(*monitor.Cgroup) *syscall.SysProcAttr { return nil }
