// Package runs is what stallspan run has on the machine while it runs: a cgroup, and a socket. Other commands find it.
package runs

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/stallspan/stallspan/agent/internal/version"
	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/monitor/follow"
)

// Server serves the windows of one run on a socket of its own.
type Server struct {
	Path string // empty if it could not be served
	Err  error
	Stop func() // returns after the last request was answered
}

// Serve begins to serve the windows of one run.
func Serve(m *monitor.Monitor, windows api.Windows) Server {
	dir, err := os.MkdirTemp("", ownRunPrefix()) // mode 0700: the socket is for the program and its user
	if err != nil {
		return Server{Err: err, Stop: func() {}}
	}
	path := filepath.Join(dir, runSocket)
	listener, err := api.Listen(path)
	if err != nil {
		_ = os.RemoveAll(dir)
		return Server{Err: err, Stop: func() {}}
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = api.NewServer(m, windows, version.Number()).Serve(ctx, listener)
	}()
	return Server{Path: path, Stop: func() {
		cancel()
		<-done
		_ = os.RemoveAll(dir)
	}}
}

// Sockets lists the sockets of the programs that run on this machine wraps.
func Sockets() []string {
	// The only error is a wrong pattern.
	found, _ := filepath.Glob(filepath.Join(os.TempDir(), Prefix+"*-*", runSocket))
	return found
}

// NewCgroup makes a cgroup for one run. It returns nil where that is not permitted: the run then shares the pressure of
// the cgroup that it is in.
func NewCgroup() *follow.Cgroup {
	group, err := follow.NewCgroup(ownRunPrefix())
	if err != nil {
		return nil
	}
	return group
}

// exitGrace is how long to wait for the program's processes to exit.
const exitGrace = 500 * time.Millisecond

// RemoveCgroup removes the cgroup, if there is one. A process that was left running in it keeps it.
func RemoveCgroup(group *follow.Cgroup) {
	if group != nil {
		_ = group.Remove(exitGrace)
	}
}

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
