package monitor

import (
	"os"

	"github.com/stallspan/stallspan/internal/source/cgroup"
)

// OwnCgroup is this process's cgroup v2: its path as in /proc/PID/cgroup, and its folder.
func OwnCgroup() (path, folder string, err error) {
	path, err = cgroup.ScopeOf("", os.Getpid())
	if err != nil {
		return "", "", err
	}
	folder, err = cgroup.Dir("", path)
	return path, folder, err
}
