package agent

import (
	"context"
	"os"
	"path/filepath"

	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/internal/monitor"
)

// apiServer serves the windows of one run on a socket of its own.
type apiServer struct {
	path string // empty if it could not be served
	err  error
	stop func() // returns after the last request was answered
}

func serveAPI(m *monitor.Monitor, windows api.Windows) apiServer {
	dir, err := os.MkdirTemp("", ownRunPrefix()) // mode 0700: the socket is for the program and its user
	if err != nil {
		return apiServer{err: err, stop: func() {}}
	}
	path := filepath.Join(dir, runSocket)
	listener, err := api.Listen(path)
	if err != nil {
		_ = os.RemoveAll(dir)
		return apiServer{err: err, stop: func() {}}
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = api.NewServer(m, windows, version()).Serve(ctx, listener)
	}()
	return apiServer{path: path, stop: func() {
		cancel()
		<-done
		_ = os.RemoveAll(dir)
	}}
}
