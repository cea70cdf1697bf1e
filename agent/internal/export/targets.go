package export

import (
	"cmp"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// Target is the OTLP backend of one signal.
type Target struct {
	Signal   string // "traces", "metrics", "logs"
	Variable string // the environment variable that names the backend
	Network  string // "tcp" or "unix"; "" if only gRPC can find the backend
	Address  string // for net.Dial; "" without a network
	Proxy    string // host and port of the proxy that is used; "" for none
}

// Targets returns the backends that the environment selects. It opens nothing, and the result holds no secret.
func Targets() ([]Target, error) {
	var targets []Target
	for _, s := range []signal{traces, metrics, logs} {
		if on, _ := s.exported(); !on {
			continue
		}
		protocol, err := s.protocol()
		if err != nil {
			return nil, err
		}
		t := Target{Signal: s.lower()}
		var endpoint string
		endpoint, t.Variable = s.setting("ENDPOINT")
		u, err := url.Parse(endpoint)
		isURL := err == nil && (u.Scheme == "http" || u.Scheme == "https")
		if err != nil || isURL && u.Hostname() == "" || !isURL && protocol == protocolHTTP || !resolvable(u, endpoint) {
			port := map[string]string{protocolGRPC: "4317", protocolHTTP: "4318"}[protocol]
			return nil, fmt.Errorf("%s is %.80q: write it like http://localhost:%s", t.Variable,
				withoutUser(endpoint), port)
		}
		t.Network, t.Address = dialed(protocol, u, endpoint)
		if t.Network == "tcp" {
			t.Proxy = proxyOf(protocol, u, t.Address)
		}
		targets = append(targets, t)
	}
	return targets, nil
}

// resolvable reports whether gRPC can find the backend: it takes any unknown scheme for a host.
func resolvable(u *url.URL, endpoint string) bool {
	if !strings.Contains(endpoint, "://") {
		return true
	}
	switch u.Scheme {
	case "http", "https", "unix", "unix-abstract", "dns", "passthrough", "xds":
		return true
	}
	return false
}

// checkScheme refuses an endpoint that gRPC would look for in vain.
func (s signal) checkScheme() error {
	protocol, err := s.protocol()
	endpoint, variable := s.setting("ENDPOINT")
	u, invalid := url.Parse(endpoint)
	if err != nil || protocol != protocolGRPC || invalid != nil || resolvable(u, endpoint) {
		return nil // or reported elsewhere
	}
	return fmt.Errorf("%s is %.80q: write it like http://localhost:4317", variable, withoutUser(endpoint))
}

// dialed returns what the exporter connects to.
func dialed(protocol string, u *url.URL, endpoint string) (network, address string) {
	switch u.Scheme {
	case "http", "https":
		port := "443" // also the default of gRPC without TLS
		if protocol == protocolHTTP && u.Scheme == "http" {
			port = "80"
		}
		return "tcp", net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), port))
	case "unix":
		return "unix", u.Path + u.Opaque // unix:///path, unix:path
	case "dns", "passthrough": // dns://server/host:port, dns:host:port
		return withPort(strings.TrimPrefix(u.Path, "/") + u.Opaque)
	}
	return withPort(endpoint)
}

// withPort completes a gRPC target of a host and perhaps a port.
func withPort(target string) (network, address string) {
	host, port, err := net.SplitHostPort(target)
	if err != nil {
		host, port = strings.Trim(target, "[]"), "443"
	}
	if host == "" || port == "" || strings.ContainsAny(host+port, "/,@ []") {
		return "", ""
	}
	return "tcp", net.JoinHostPort(host, port)
}

// proxyOf returns the proxy that the environment names for an address. gRPC looks it up as if every connection used
// TLS.
func proxyOf(protocol string, u *url.URL, address string) string {
	if protocol == protocolGRPC {
		u = &url.URL{Scheme: "https", Host: address}
	}
	proxy, err := http.ProxyFromEnvironment(&http.Request{URL: u})
	if err != nil || proxy == nil {
		return ""
	}
	return addressOfProxy(proxy)
}

func addressOfProxy(proxy *url.URL) string {
	port := map[string]string{"https": "443", "socks5": "1080", "socks5h": "1080"}[proxy.Scheme]
	return net.JoinHostPort(proxy.Hostname(), cmp.Or(proxy.Port(), port, "80"))
}
