package export

import (
	"net"
	"net/url"
	"strings"
	"testing"
)

// An endpoint leads to one address with a port, or to none, and no password is part of it. A proxy has a port, too.
func FuzzDialed(f *testing.F) {
	for _, endpoint := range []string{"http://localhost:4317", "https://[::1]", "unix:///run/otel.sock", "unix:otel.sock",
		"dns://8.8.8.8/backend:4317", "passthrough:///h:1", "backend", "[fe80::1%25eth0]:4317", "http://user:PW@h/path"} {
		f.Add(endpoint, true, "http://proxy.example")
		f.Add(endpoint, false, "socks5://u:PW@p")
	}
	f.Fuzz(func(t *testing.T, endpoint string, http bool, proxy string) {
		protocol := protocolGRPC
		if http {
			protocol = protocolHTTP
		}
		u, err := url.Parse(endpoint)
		if err != nil || strings.ContainsAny(u.Hostname(), "[]") { // no name that can be resolved
			return
		}
		network, address := dialed(protocol, u, endpoint)
		switch network {
		case "tcp":
			if _, port, err := net.SplitHostPort(address); err != nil || port == "" {
				t.Errorf("%q: got address %q, want host:port", endpoint, address)
			}
			if password, set := u.User.Password(); set && len(password) > 3 && strings.Contains(address, password) &&
				!strings.Contains(u.Host, password) {
				t.Errorf("%q: got the password in %q", endpoint, address)
			}
		case "unix":
		case "":
			if address != "" {
				t.Errorf("%q: got address %q without a network", endpoint, address)
			}
		default:
			t.Errorf("%q: got network %q", endpoint, network)
		}
		if by, err := url.Parse(proxy); err == nil && !strings.ContainsAny(by.Hostname(), "[]") {
			if _, port, err := net.SplitHostPort(addressOfProxy(by)); err != nil || port == "" {
				t.Errorf("%q: got proxy %q, want host:port", proxy, addressOfProxy(by))
			}
		}
	})
}
