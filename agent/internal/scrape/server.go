package scrape

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/prometheus/exporter-toolkit/web"

	"github.com/stallspan/stallspan/internal/api"
)

// Limits of what clients can use.
const (
	maxConnections = 64               // one client gets a quarter of them
	headerTimeout  = 5 * time.Second  // for the header of a request
	writeTimeout   = 15 * time.Second // for a response, from the end of the request's header
	idleTimeout    = 2 * time.Minute  // between two requests
	maxHeader      = 16 << 10         // bytes
	grace          = time.Second      // for open requests when the server stops
	secureTime     = time.Second      // for which certificates are not read again
)

// Server serves GET /metrics on a port of its own.
type Server struct {
	listener net.Listener
	config   *Config
	clients  clients // as the server began
	guard    *guard
	http2    bool

	mu     sync.Mutex  // guards the fields below
	secure *tls.Config // the last one that could be used; nil without TLS
	looked time.Time   // when the files were read for it
}

// Listen opens the port. Beyond loopback it needs a web_config that asks who its clients are, over TLS.
func (c *Config) Listen() (*Server, error) {
	of, err := c.check()
	if err != nil {
		return nil, err
	}
	s := &Server{config: c, clients: of.clients, http2: of.HTTPConfig.HTTP2, guard: newGuard(of.RateLimiterConfig)}
	l, err := c.open(of.clients)
	if err != nil {
		return nil, err
	}
	s.listener = api.Shared(l, maxConnections)
	return s, nil
}

// URL is where the server listens.
func (s *Server) URL() string {
	scheme := "http"
	if s.clients.tls {
		scheme = "https"
	}
	return scheme + "://" + s.listener.Addr().String()
}

// Close closes the port of a server that does not serve.
func (s *Server) Close() { _ = s.listener.Close() }

// Serve answers until ctx ends. Clients that have named themselves get all metrics, others those of the machine alone.
func (s *Server) Serve(ctx context.Context, of api.Scraped) error {
	metrics := of.Machine
	if s.clients.asksWho {
		metrics = of.All
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		switch now, err := s.now(); {
		case err != nil:
			http.Error(w, "the web_config of this server cannot be used now", http.StatusServiceUnavailable)
			s.guard.problems.Println(err)
		case !s.clients.asksWho && !api.IsLocal(r.Host):
			http.Error(w, "this port is for programs on this machine: use localhost", http.StatusForbidden)
		case s.guard.admits(w, r, now):
			metrics.ServeHTTP(w, r)
		}
	})
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, "<!DOCTYPE html><title>Stallspan</title><a href=\"/metrics\">Metrics</a>\n")
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: headerTimeout, ReadTimeout: headerTimeout,
		WriteTimeout: writeTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		ErrorLog: log.New(io.Discard, "", 0)} // what clients do wrong
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
		defer cancel()
		if server.Shutdown(ctx) != nil {
			_ = server.Close()
		}
	})
	err := s.serve(server)
	if !stop() {
		<-stopped
	}
	if errors.Is(err, http.ErrServerClosed) || errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}

// now returns what the web_config says now. The error is one of a file that is not as safe as that at the start.
func (s *Server) now() (*settings, error) {
	now, err := s.config.read()
	switch {
	case err != nil:
		return nil, err
	case now.clients != s.clients:
		return nil, errors.New("web_config " + s.config.WebConfig +
			" asks for other passwords, certificates or TLS than at the start: correct it, or restart the agent")
	}
	return now, nil
}

func (s *Server) serve(server *http.Server) error {
	if !s.clients.tls {
		return server.Serve(s.listener)
	}
	server.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return s.forClient() }}
	server.Protocols = new(http.Protocols)
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetHTTP2(s.http2)
	return server.ServeTLS(s.listener, "", "")
}

// forClient returns how to encrypt a new connection: as the files say now, or else as they did before.
func (s *Server) forClient() (*tls.Config, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.looked) < secureTime {
		return s.secure, nil
	}
	if now, err := s.now(); err == nil {
		if secure, err := web.ConfigToTLSConfig(&now.TLSConfig); err == nil {
			secure.NextProtos = []string{"http/1.1"}
			if s.http2 {
				secure.NextProtos = []string{"h2", "http/1.1"}
			}
			s.secure, s.looked = secure, time.Now()
		}
	}
	if s.secure == nil {
		return nil, errors.New("the web_config cannot be used")
	}
	return s.secure, nil
}
