package api

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
)

// ListenTCP opens a port. "4319" and ":4319" are on loopback; other addresses need a host. The API has no
// authentication: every client that reaches the port can announce windows and read reports.
func ListenTCP(endpoint string) (net.Listener, error) {
	address, err := Endpoint(endpoint)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s, choose another port: %w", endpoint, err)
	}
	return l, nil
}

// Endpoint returns the address of a configured endpoint.
func Endpoint(text string) (address string, err error) {
	host, port, err := net.SplitHostPort(text)
	if err != nil && !strings.Contains(text, ":") {
		host, port, err = "", text, nil
	}
	if _, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil {
		return "", fmt.Errorf("the endpoint %q is not a port: write localhost:4319, or ADDRESS:4319 for other machines", text)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port), nil
}

// onlyLocal refuses requests to a loopback port that name another host. A page in a browser can reach the port under a
// name that resolves to this machine (DNS rebinding), but it cannot hide that name.
func (s *Server) onlyLocal(next http.Handler) http.Handler {
	return handler(func(w http.ResponseWriter, r *http.Request) error {
		if s.loopback && !isLocal(r.Host) {
			return refuse(http.StatusForbidden, "this port is for programs on this machine: use localhost, not %s",
				excerpt(r.Host))
		}
		next.ServeHTTP(w, r)
		return nil
	})
}

func isLocal(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	address, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && address.IsLoopback()
}
