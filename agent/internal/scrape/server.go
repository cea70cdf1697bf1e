package scrape

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/exporter-toolkit/web"
	"go.yaml.in/yaml/v3"
	"golang.org/x/net/netutil"

	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/internal/trust"
)

// Limits of what clients can use.
const (
	maxConnections = 16
	headerTimeout  = 5 * time.Second  // for the header of a request
	writeTimeout   = 15 * time.Second // for a response, from the end of the request's header
	idleTimeout    = 2 * time.Minute  // between two requests
	maxHeader      = 16 << 10         // bytes
	grace          = time.Second      // for open requests when the server stops
)

// Config is where Prometheus finds the metrics.
type Config struct {
	Endpoint  string `yaml:"endpoint"`   // "9464" for a loopback port, or ADDRESS:9464; "" for none
	WebConfig string `yaml:"web_config"` // file with TLS and users, as exporter-toolkit has it; "" for none
}

// Check returns what is wrong with a config.
func (c *Config) Check() error {
	if c.Endpoint == "" {
		if c.WebConfig != "" {
			return errors.New("web_config is set and endpoint is not: set endpoint, such as 9464")
		}
		return nil
	}
	if _, err := api.Endpoint(c.Endpoint); err != nil {
		return err
	}
	_, err := c.clients()
	return err
}

// clients is what a web_config asks of them.
type clients struct {
	asksWho bool // to name themselves, by a password or a certificate
	tls     bool
}

func (c *Config) clients() (clients, error) {
	if c.WebConfig == "" {
		return clients{}, nil
	}
	if !filepath.IsAbs(c.WebConfig) {
		return clients{}, errors.New("web_config needs an absolute path")
	}
	text, err := trust.Secret("web_config", c.WebConfig)
	if err != nil {
		return clients{}, err
	}
	if err := web.Validate(c.WebConfig); err != nil {
		return clients{}, fmt.Errorf("web_config %s: %w", c.WebConfig, err)
	}
	var file struct {
		Users map[string]string `yaml:"basic_auth_users"`
		TLS   map[string]any    `yaml:"tls_server_config"`
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		return clients{}, fmt.Errorf("web_config %s: %w", c.WebConfig, err)
	}
	certified := file.TLS["client_auth_type"] == "RequireAndVerifyClientCert"
	return clients{asksWho: len(file.Users) > 0 || certified, tls: len(file.TLS) > 0}, nil
}

// Server serves GET /metrics on a port of its own.
type Server struct {
	listener net.Listener
	clients
	config string
}

// Listen opens the port. Beyond loopback it needs a web_config that asks who its clients are.
func (c *Config) Listen() (*Server, error) {
	of, err := c.clients()
	if err != nil {
		return nil, err
	}
	open := api.ListenLoopback
	if of.asksWho {
		open = func(endpoint string) (net.Listener, error) {
			return api.ListenTCP(endpoint, []byte("the web_config's users"))
		}
	}
	l, err := open(c.Endpoint)
	if err != nil {
		return nil, fmt.Errorf("prometheus: %w", err)
	}
	return &Server{netutil.LimitListener(l, maxConnections), of, c.WebConfig}, nil
}

// URL is where the server listens.
func (s *Server) URL() string {
	scheme := "http"
	if s.tls {
		scheme = "https"
	}
	return scheme + "://" + s.listener.Addr().String()
}

// Close closes the port of a server that does not serve.
func (s *Server) Close() { _ = s.listener.Close() }

// Serve answers until ctx ends. Clients that have named themselves get all metrics, others those of the machine alone.
func (s *Server) Serve(ctx context.Context, of api.Scraped) error {
	metrics := of.Machine
	if s.asksWho {
		metrics = of.All
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		if !s.asksWho && !api.IsLocal(r.Host) {
			http.Error(w, "this port is for programs on this machine: use localhost", http.StatusForbidden)
			return
		}
		metrics.ServeHTTP(w, r)
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
	err := web.Serve(s.listener, server, &web.FlagConfig{WebConfigFile: &s.config},
		slog.New(slog.DiscardHandler))
	if !stop() {
		<-stopped
	}
	if errors.Is(err, http.ErrServerClosed) || errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}
