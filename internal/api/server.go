// Package api serves the windows of one machine over HTTP, as docs/api.md describes it, on a unix socket. It also holds
// the client. Opening and closing windows is left to the door that serves it, because the door starts their spans;
// what is only read comes straight from the monitor.
package api

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/window"
)

// Windows is the door behind a Server. It is called by many goroutines at once.
type Windows interface {
	// Begin opens a window. parent is the caller's span, and invalid without one. traceparent is the context of the
	// window's span, "" if it has none. An *Error is returned with its status, windows.ErrTooMany with 503, every other
	// error with 400.
	Begin(w window.Window, parent trace.SpanContext) (id, traceparent string, err error)
	// End closes a window and returns its report; failed means that its work did not succeed, so that the window is
	// unfinished. windows.ErrUnknown is returned with 404.
	End(id string, failed bool) (*window.Report, error)
}

// Bounds of what clients can hold.
const (
	mostConnections = 256              // open at once; more wait in the kernel's queue
	mostListings    = 4                // answers with many reports that are made at once
	mostHeader      = 16 << 10         // bytes
	mostBody        = 64 << 10         // bytes
	mostDrained     = 16 * mostBody    // bytes that are still read of a request that was refused
	readTimeout     = 5 * time.Second  // for a whole request, from the connection on
	writeTimeout    = 15 * time.Second // for an answer, from the end of the request's header on
	grace           = 2 * time.Second  // for requests under way when the server stops
)

// Server answers requests on one listener.
type Server struct {
	monitor  *monitor.Monitor
	windows  Windows
	version  string
	started  time.Time
	listings chan struct{}
	streams  chan struct{}
	ending   chan struct{} // closed when the server stops
	events   Events
	loopback bool // it answers on a loopback port
	local    bool // it answers on a unix socket
	http     http.Server
	open     sync.WaitGroup // connections
}

// NewServer prepares a server; Serve runs it. version is what GET /v1/status tells.
func NewServer(m *monitor.Monitor, windows Windows, version string) *Server {
	s := &Server{
		monitor:  m,
		windows:  windows,
		version:  version,
		started:  time.Now(),
		listings: make(chan struct{}, mostListings),
		streams:  make(chan struct{}, mostStreams),
		ending:   make(chan struct{}),
	}
	s.http = http.Server{
		Handler:           s.routes(),
		ReadHeaderTimeout: readTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		MaxHeaderBytes:    mostHeader,
		ConnContext:       withPeer,
	}
	// One request a connection: a client that keeps many open cannot shut the others out, and the caller's process is
	// always the one that asks. A new connection to a unix socket costs microseconds.
	s.http.SetKeepAlivesEnabled(false)
	s.http.RegisterOnShutdown(func() { close(s.ending) })
	return s
}

// Serve answers until ctx ends, gives requests under way 2 s to finish, closes the listener and returns nil. An error
// says that the listener failed before. Call it once.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	if at, ok := l.Addr().(*net.TCPAddr); ok {
		s.loopback = at.IP.IsLoopback()
	}
	s.local = l.Addr().Network() == "unix"
	g := newGate(l, mostConnections)
	s.http.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			s.open.Add(1)
		case http.StateClosed:
			g.leave()
			s.open.Done()
		}
	}
	served := make(chan error, 1)
	go func() { served <- s.http.Serve(g) }()
	var failed error
	select {
	case failed = <-served:
	case <-ctx.Done():
	}
	s.stop()
	if failed == nil {
		failed = <-served
	}
	s.wait()
	if errors.Is(failed, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("the API no longer answers on %s, start it again: %w", l.Addr(), failed)
}

func (s *Server) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	if err := s.http.Shutdown(ctx); err != nil {
		_ = s.http.Close() // cuts off who is still sending or not reading
	}
}

// wait lets the connections' goroutines end. Only a door that hangs can hold one for longer than it waits.
func (s *Server) wait() {
	done := make(chan struct{})
	go func() {
		s.open.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(grace):
	}
}
