package scrape

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/exporter-toolkit/web"
	"go.yaml.in/yaml/v3"
	"golang.org/x/crypto/bcrypt"
	"golang.org/x/time/rate"

	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/trust"
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
	_, err := c.check()
	return err
}

// clients is what a web_config asks of them.
type clients struct {
	asksWho bool // to name themselves, by a password or a certificate
	tls     bool
}

// settings is what a web_config says.
type settings struct {
	web.Config
	clients
	certified bool // clients have a certificate
}

// check reads the file, and looks at the files that it names, too.
func (c *Config) check() (*settings, error) {
	s, err := c.read()
	if err != nil || c.WebConfig == "" {
		return s, err
	}
	if err := web.Validate(c.WebConfig); err != nil {
		return nil, fmt.Errorf("web_config %s: %w", c.WebConfig, err)
	}
	return s, nil
}

// read reads the file. One that is open to all users, or has half a password, is an error.
func (c *Config) read() (*settings, error) {
	s := &settings{Config: web.Config{TLSConfig: web.TLSConfig{MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS13},
		HTTPConfig: web.HTTPConfig{HTTP2: true}}}
	if c.WebConfig == "" {
		return s, nil
	}
	text, err := trust.Secret("web_config", c.WebConfig)
	if err != nil {
		return nil, err
	}
	in := yaml.NewDecoder(bytes.NewReader(text))
	in.KnownFields(true)
	if err := in.Decode(&s.Config); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("web_config %s: %w", c.WebConfig, err)
	}
	for name, hash := range s.Users {
		if _, err := bcrypt.Cost([]byte(hash)); err != nil {
			return nil, fmt.Errorf("web_config %s: the password of %.60q: %w", c.WebConfig, name, err)
		}
	}
	s.TLSConfig.SetDirectory(filepath.Dir(c.WebConfig))
	s.certified = s.TLSConfig.ClientAuth == "RequireAndVerifyClientCert"
	s.clients = clients{asksWho: len(s.Users) > 0 || s.certified, tls: s.TLSConfig.IsEnabled()}
	return s, nil
}

// open opens the port.
func (c *Config) open(of clients) (l net.Listener, err error) {
	if of.asksWho && of.tls {
		l, err = api.ListenTCP(c.Endpoint, []byte("the web_config's users"))
	} else {
		l, err = api.ListenLoopback(c.Endpoint)
	}
	switch {
	case err != nil && of.asksWho && !of.tls:
		return nil, fmt.Errorf("prometheus.endpoint: %w, or set tls_server_config: passwords need TLS elsewhere", err)
	case errors.Is(err, api.ErrOpen) && c.WebConfig == "":
		return nil, fmt.Errorf("prometheus.endpoint: %w, or set prometheus.web_config with TLS and users", err)
	case err != nil:
		return nil, fmt.Errorf("prometheus.endpoint: %w", err)
	}
	return l, nil
}

// Bounds of passwords. A comparison takes some 50 ms of a core.
const (
	maxCompared = 40 // in a minute: see trust.Rate
	maxProven   = 64
)

// guard decides who gets the metrics. It is safe for concurrent use.
type guard struct {
	compared *trust.Rate   // passwords that were not known, by client
	limit    *rate.Limiter // of all requests; nil for none
	problems *problems

	comparing sync.Mutex // of one password at a time
	mu        sync.Mutex // guards the field below
	proven    map[[sha256.Size]byte]bool
}

func newGuard(of web.RateLimiterConfig) *guard {
	g := &guard{
		compared: trust.NewRate(maxCompared, time.Minute), proven: map[[sha256.Size]byte]bool{}, problems: new(problems),
	}
	if of.Interval > 0 {
		g.limit = rate.NewLimiter(rate.Every(of.Interval), of.Burst)
	}
	return g
}

// admits reports whether a client gets the metrics. If not, it has its answer.
func (g *guard) admits(w http.ResponseWriter, r *http.Request, now *settings) bool {
	for name, value := range now.HTTPConfig.Header {
		w.Header().Set(name, value)
	}
	status := http.StatusOK
	switch {
	case g.limit != nil && !g.limit.Allow():
		status = http.StatusTooManyRequests
	case now.certified && (r.TLS == nil || len(r.TLS.VerifiedChains) == 0):
		status = http.StatusUnauthorized
	case len(now.Users) > 0:
		status = g.know(r, now)
	}
	if status == http.StatusOK {
		return true
	}
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Basic")
	}
	http.Error(w, http.StatusText(status), status)
	return false
}

// know returns 200 for one of the users, 401 for others, and 429 for a client that has sent too many passwords.
func (g *guard) know(r *http.Request, now *settings) (status int) {
	name, password, ok := r.BasicAuth()
	if !ok {
		return http.StatusUnauthorized
	}
	hash, known := now.Users[name]
	key := sha256.Sum256([]byte(strconv.Quote(name) + strconv.Quote(string(hash)) + password))
	g.mu.Lock()
	ok = g.proven[key]
	g.mu.Unlock()
	if ok {
		return http.StatusOK
	}
	if g.compared.Take(api.ClientOver(r.RemoteAddr), sample.Now().Mono) != nil {
		return http.StatusTooManyRequests
	}
	if !known {
		hash = unknownUser
	}
	g.comparing.Lock()
	err := bcrypt.CompareHashAndPassword([]byte(hash), []byte(password))
	g.comparing.Unlock()
	if err != nil || !known {
		return http.StatusUnauthorized
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.proven) >= maxProven {
		clear(g.proven)
	}
	g.proven[key] = true
	return http.StatusOK
}

// unknownUser is a hash of cost 10: by the time of a comparison, users do not differ from others.
const unknownUser = "$2y$10$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi"
