package receiver

import (
	"context"
	"fmt"
	"net"
	"sync"

	"go.opentelemetry.io/collector/receiver"
	"go.uber.org/zap"

	"github.com/stallspan/stallspan/internal/alert"
	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/session"
)

// server is the API on which programs announce windows. A nil one does nothing.
type server struct {
	listeners []net.Listener
	cancel    context.CancelFunc
	open      sync.WaitGroup
}

// listen opens the socket, and the port where the config names one.
func listen(c *Config) (*server, error) {
	path := c.Socket
	if path == "" {
		path = api.DefaultSocket()
	}
	socket, err := api.Listen(path)
	if err != nil {
		return nil, fmt.Errorf("the API cannot be served: %w", err)
	}
	s := &server{listeners: []net.Listener{socket}, cancel: func() {}}
	if c.Endpoint == "" {
		return s, nil
	}
	port, err := api.ListenTCP(c.Endpoint)
	if err != nil {
		s.stop()
		return nil, err
	}
	s.listeners = append(s.listeners, port)
	return s, nil
}

// start answers until stop.
func (s *server) start(m *monitor.Monitor, windows *session.Session, board *alert.Board, set receiver.Settings) {
	if s == nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	for _, l := range s.listeners {
		set.Logger.Info("windows are announced here", zap.Stringer("address", l.Addr()))
		if tcp, ok := l.Addr().(*net.TCPAddr); ok && !tcp.IP.IsLoopback() {
			set.Logger.Warn("this port is open to other machines, and asks nobody who they are", zap.Stringer("address", l.Addr()))
		}
		s.open.Go(func() {
			if err := api.NewServer(m, windows, set.BuildInfo.Version).With(api.Events{Board: board}).Serve(ctx, l); err != nil {
				set.Logger.Error("no more windows can be announced", zap.Error(err))
			}
		})
	}
}

// stop waits until the last request is answered.
func (s *server) stop() {
	if s == nil {
		return
	}
	s.cancel()
	s.open.Wait()
	for _, l := range s.listeners {
		_ = l.Close() // once more, where nobody served it
	}
}
