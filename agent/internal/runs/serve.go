// Package runs is what stallspan run has on the machine while it runs: a cgroup, and a socket. Other commands find it.
package runs

import (
	"context"
	"os"
	"path/filepath"

	"github.com/stallspan/stallspan/agent/internal/version"
	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/internal/monitor"
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
