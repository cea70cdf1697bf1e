package export

import (
	"net"
	"net/http"
	"net/url"
	"strings"
)

// Target is where one signal goes, for who wants to look whether something listens there.
type Target struct {
	Signal   string // "traces", "metrics", "logs"
	Variable string // that says so
	Network  string // "tcp" or "unix"; "" where gRPC alone knows how to find the backend
	Address  string // as net.Dial takes it; "" without a network
	Proxy    string // host and port of the proxy that is asked instead; "" for none
}

// Targets are those of the signals that leave. Like New it checks the whole environment, and it opens nothing. What it
// gives holds no secret.
func Targets() ([]Target, error) {
	var targets []Target
	for _, s := range []signal{traces, metrics, logs} {
		r, err := routeOf(s)
		if err != nil {
			return nil, err
		}
		if r == nil {
			continue
		}
		t := Target{Signal: strings.ToLower(string(s))}
		var value string
		value, t.Variable = s.setting("ENDPOINT")
		t.Network, t.Address = dialed(r.protocol, value)
		if t.Network == "tcp" {
			t.Proxy = proxyOf(r.protocol, value, t.Address)
		}
		targets = append(targets, t)
	}
	if len(targets) > 0 {
		if err := checkSampler(); err != nil {
			return nil, err
		}
		if _, err := readerOptions(); err != nil {
			return nil, err
		}
	}
	return targets, nil
}

// dialed is what the exporter of this protocol connects to.
func dialed(protocol, value string) (network, address string) {
	u, err := url.Parse(value)
	if err != nil {
		return "", "" // which checkEndpoint has refused
	}
	switch strings.ToLower(u.Scheme) {
	case "http", "https":
		port := u.Port()
		switch {
		case port != "":
		case protocol == protocolGRPC || strings.EqualFold(u.Scheme, "https"):
			port = "443"
		default:
			port = "80"
		}
		return "tcp", net.JoinHostPort(u.Hostname(), port)
	case "unix":
		return "unix", u.Path + u.Opaque // unix:///path, unix:path
	case "dns", "passthrough": // dns://server/host:port, dns:host:port
		return withPort(strings.TrimPrefix(u.Path, "/") + u.Opaque)
	}
	return withPort(value)
}

// withPort completes what gRPC takes as a host and perhaps a port.
func withPort(target string) (network, address string) {
	host, port, err := net.SplitHostPort(target)
	if err != nil {
		host, port = strings.Trim(target, "[]"), "443"
	}
	if host == "" || port == "" || strings.ContainsAny(host+port, "/,@ ") {
		return "", ""
	}
	return "tcp", net.JoinHostPort(host, port)
}

// proxyOf is the proxy that the environment has for an address. gRPC asks for it as if every connection were TLS.
func proxyOf(protocol, value, address string) string {
	u := &url.URL{Scheme: "https", Host: address}
	if protocol == protocolHTTP {
		var err error
		if u, err = url.Parse(value); err != nil {
			return ""
		}
	}
	proxy, err := http.ProxyFromEnvironment(&http.Request{URL: u})
	if err != nil || proxy == nil {
		return ""
	}
	port := proxy.Port()
	if port == "" {
		port = map[string]string{"https": "443", "socks5": "1080", "socks5h": "1080"}[proxy.Scheme]
	}
	if port == "" {
		port = "80"
	}
	return net.JoinHostPort(proxy.Hostname(), port)
}
