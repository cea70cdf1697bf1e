package agent

import (
	"syscall"

	"github.com/stallspan/stallspan/internal/monitor/follow"
)

// inCgroup has a program start in a cgroup.
func inCgroup(group *follow.Cgroup) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(group.Dir.Fd())}
}
