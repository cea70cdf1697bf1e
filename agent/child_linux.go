package agent

import "syscall"

// inCgroup has a program start in a cgroup.
func inCgroup(group *cgroup) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(group.dir.Fd())}
}
