//go:build linux && (amd64 || arm64)

package receiver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"go.opentelemetry.io/collector/receiver"
	"go.uber.org/zap"

	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/progress/follow"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/windows"
)

// server serves the API on which programs announce windows. A nil *server does nothing.
type server struct {
	listeners []net.Listener
	cancel    context.CancelFunc
	serving   sync.WaitGroup
	logs      *follow.Logs // nil before start
	token     []byte       // that clients of the port need; nil for none
}

// listen opens the socket, and the port if there is one in the config.
func listen(c *Config) (*server, error) {
	token, err := api.ReadToken("token_file", c.Token)
	if err != nil {
		return nil, err
	}
	path := c.Socket
	if path == "" {
		path = api.DefaultSocket()
	}
	socket, err := api.Listen(path)
	if err != nil {
		return nil, fmt.Errorf("cannot serve the API: %w", err)
	}
	s := &server{listeners: []net.Listener{socket}, cancel: func() {}, token: token}
	if c.Endpoint == "" {
		return s, nil
	}
	port, err := api.ListenTCP(c.Endpoint, token)
	if err != nil {
		s.stop()
		return nil, err
	}
	s.listeners = append(s.listeners, port)
	return s, nil
}

// start serves until stop.
func (s *server) start(m *monitor.Monitor, client *windows.Client, events api.Events, set receiver.Settings) {
	if s == nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel, s.logs = cancel, follow.NewLogs(m, client)
	for _, l := range s.listeners {
		set.Logger.Info("listening for announced windows", zap.Stringer("address", l.Addr()))
		s.serving.Go(func() {
			server := api.NewServer(m, s.logs, set.BuildInfo.Version).With(events).
				Requiring(s.token)
			var err error
			failed := sample.Protect(func() { err = server.Serve(ctx, l) }) // requests are protected one by one
			if err := errors.Join(failed, err); err != nil {
				set.Logger.Error("the API has ended: windows can no longer be announced", zap.Error(err))
			}
		})
	}
}

// stop waits for the requests in progress.
func (s *server) stop() {
	if s == nil {
		return
	}
	s.cancel()
	s.serving.Wait()
	if s.logs != nil {
		s.logs.Close()
	}
	for _, l := range s.listeners {
		_ = l.Close() // those that were never served
	}
}
