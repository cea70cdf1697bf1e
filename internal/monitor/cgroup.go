package monitor

import (
	"os"

	"github.com/stallspan/stallspan/internal/source/pressure"
)

// OwnCgroup is this process's cgroup v2: its path as in /proc/PID/cgroup, and its folder.
func OwnCgroup() (path, folder string, err error) {
	path, err = pressure.ScopeOf("", os.Getpid())
	if err != nil {
		return "", "", err
	}
	folder, err = pressure.Dir("", path)
	return path, folder, err
}
