package agent

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/monitor/follow"
)

// inCgroup has a program start in a cgroup.
func inCgroup(group *follow.Cgroup) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(group.Dir.Fd())}
}

// awaitExit returns when a child has exited. Its files in /proc keep the final counters until its parent waits for it.
func awaitExit(pid int) {
	for errors.Is(unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
	}
}
