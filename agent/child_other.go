//go:build !linux

package agent

import "syscall"

// inCgroup changes nothing: only Linux has cgroups, and none is made elsewhere.
func inCgroup(*cgroup) *syscall.SysProcAttr { return nil }
