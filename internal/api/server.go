// Package api serves the HTTP API of docs/api.md on a unix socket or a TCP port, and has its client. An
// implementation of Windows opens and closes windows with their spans. Requests that only read are answered
// from the monitor.
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
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/trust"
	"github.com/stallspan/stallspan/internal/window"
)

// Windows opens and closes windows for a Server. It is safe for concurrent use.
type Windows interface {
	// Begin opens a window. parent is the caller's span, and invalid without one. traceparent is the context of the
	// window's span, or "". The HTTP status is that of an *Error, 503 for windows.ErrTooMany, and 400 for other errors.
	Begin(w window.Window, parent trace.SpanContext) (id, traceparent string, err error)
	// End closes a window and returns its report. attributes are added to its span.
	// The HTTP status is 404 for windows.ErrUnknown.
	End(id string, how window.Outcome, attributes map[string]string) (*window.Report, error)
}

// Limits of what clients can use.
const (
	maxConnections = 256              // open; more wait in the kernel's queue
	maxListings    = 4                // responses with all reports that are built at a time
	headerTimeout  = time.Second      // for the header of a request on a unix socket, from the connection
	maxHeader      = 16 << 10         // bytes
	maxBody        = 64 << 10         // bytes
	maxDrained     = 16 * maxBody     // bytes read from a refused request
	readTimeout    = 5 * time.Second  // for a whole request, from the connection
	writeTimeout   = 15 * time.Second // for a response, from the end of the request's header
	grace          = 2 * time.Second  // for open requests when the server stops
)

// Server serves the API on one listener.
type Server struct {
	monitor    *monitor.Monitor
	windows    Windows
	version    string
	started    time.Time
	listings   *trust.Places
	streams    *trust.Places
	eventRate  *trust.Rate // of events by other programs
	windowRate *trust.Rate // of windows by other programs
	callers    *callers
	logFiles   logFiles
	owners     logOwners
	ending     chan struct{} // closed when the server stops
	events     Events
	metrics    Scraped       // for Prometheus; either may be nil
	past       Past          // nil for none
	pastTime   time.Duration // for a page to read it
	copies     *trust.Places // of the past: its disk may hang, and lists of windows must not wait for it
	token      []byte        // that requests over TCP need; nil for none
	loopback   bool          // the listener is a loopback port
	local      bool          // the listener is a unix socket
	http       http.Server
	open       sync.WaitGroup // connections
}

// NewServer returns a server for Serve to run. version is the one in GET /v1/status.
func NewServer(m *monitor.Monitor, windows Windows, version string) *Server {
	s := &Server{
		monitor:    m,
		windows:    windows,
		version:    version,
		started:    time.Now(),
		listings:   trust.NewPlaces(maxListings),
		copies:     trust.NewPlaces(maxListings),
		streams:    trust.NewPlaces(maxStreams),
		eventRate:  trust.NewRate(maxReported, reportPeriod),
		windowRate: trust.NewRate(maxReportedWindows, reportPeriod),
		pastTime:   pastTime,
		ending:     make(chan struct{}),
	}
	s.http = http.Server{
		Handler:           s.routes(),
		ReadHeaderTimeout: readTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		MaxHeaderBytes:    maxHeader,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, peerKey{}, c)
		},
	}
	// One request per connection: idle connections cannot use up the limit, and the process that connected is the one
	// that sent the request. A new connection to a unix socket takes microseconds.
	s.http.SetKeepAlivesEnabled(false)
	s.http.RegisterOnShutdown(func() { close(s.ending) })
	return s
}

// Serve serves until ctx ends, gives open requests 2 s to finish, closes the listener and returns nil. It returns an
// error if the listener fails before. Call it once.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	s.loopback = onLoopback(l.Addr())
	s.callers = &callers{s.monitor.Owners}
	if s.local = l.Addr().Network() == "unix"; s.local {
		s.http.ReadHeaderTimeout = headerTimeout
	}
	s.http.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			s.open.Add(1)
		case http.StateClosed:
			s.open.Done()
		}
	}
	served := make(chan error, 1)
	go func() { served <- s.http.Serve(newListener(l, maxConnections, s.callers.of)) }()
	var failed error
	select {
	case failed = <-served:
	case <-ctx.Done():
	}
	s.stop()
	if failed == nil {
		failed = <-served
	}
	sample.Within(grace, s.open.Wait) // for the connections' goroutines: only Windows can hold one for longer
	if errors.Is(failed, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("the API on %s has stopped, start it again: %w", l.Addr(), failed)
}

func (s *Server) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	if err := s.http.Shutdown(ctx); err != nil {
		_ = s.http.Close() // disconnects clients that still send or do not read
	}
}
