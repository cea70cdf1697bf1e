package runs

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/stallspan/stallspan/internal/monitor/follow"
)

// Prefix begins the names of what a run makes and removes at its end: its cgroup, and the folder of its socket. The
// process id follows, so that a later run can remove what a killed one has left.
const Prefix = "stallspan-run-"

const runSocket = "api.sock" // in the socket's folder

func ownRunPrefix() string { return fmt.Sprintf("%s%d-", Prefix, os.Getpid()) }

// SweepAge is how old something must be: the process ids of another PID namespace are unknown here.
const SweepAge = time.Minute

// Sweep removes the cgroups and socket folders of runs that were killed, and are at least so old.
func Sweep(age time.Duration) {
	if _, own, err := follow.OwnCgroup(); err == nil {
		for _, group := range leftBehind(own, age) {
			_ = os.Remove(group) // fails while a process is in it
		}
	}
	for _, folder := range leftBehind(os.TempDir(), age) {
		path := filepath.Join(folder, runSocket)
		if c, err := net.DialTimeout("unix", path, time.Second); err == nil {
			_ = c.Close() // a run in another PID namespace
			continue
		}
		_ = os.Remove(path)
		_ = os.Remove(folder)
	}
}

// leftBehind finds folders of this user in a folder that were made by runs that no longer exist.
func leftBehind(in string, age time.Duration) (found []string) {
	all, _ := filepath.Glob(filepath.Join(in, Prefix+"*-*")) // its only error is a wrong pattern
	for _, path := range all {
		id, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(path), Prefix), "-")
		pid, err := strconv.Atoi(id)
		if err != nil || pid <= 0 || !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			continue
		}
		info, err := os.Lstat(path)
		if err != nil || !info.IsDir() || time.Since(info.ModTime()) < age {
			continue
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) == os.Geteuid() {
			found = append(found, path)
		}
	}
	return found
}
