package agent

import (
	"syscall"

	"github.com/stallspan/stallspan/internal/monitor"
)

// inCgroup has a program start in a cgroup.
func inCgroup(group *monitor.Cgroup) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(group.Dir.Fd())}
}
