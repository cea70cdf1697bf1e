package api

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
)

// ListenTCP opens a port: "4319" and ":4319" are on loopback, and a host has to be named for any other address. The API
// asks nobody who they are: whoever reaches the port can announce windows and read reports.
func ListenTCP(endpoint string) (net.Listener, error) {
	address, err := Endpoint(endpoint)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("nothing can listen on %s, choose another port: %w", endpoint, err)
	}
	return l, nil
}

// Endpoint is the address that ListenTCP listens on. The error says what is wrong with what was written.
func Endpoint(written string) (address string, err error) {
	host, port, err := net.SplitHostPort(written)
	if err != nil && !strings.Contains(written, ":") {
		host, port, err = "", written, nil
	}
	if _, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil {
		return "", fmt.Errorf("the endpoint %q is no port: write localhost:4319, or ADDRESS:4319 for other machines", written)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port), nil
}

// onlyLocal refuses what reaches a port that was opened on loopback under another machine's name: a page in a browser
// whose name was made to stand for this machine (DNS rebinding). A browser cannot hide the name.
func (s *Server) onlyLocal(next http.Handler) http.Handler {
	return handler(func(w http.ResponseWriter, r *http.Request) error {
		if s.loopback && !isLocal(r.Host) {
			return refuse(http.StatusForbidden, "this port is for programs on this machine: ask for localhost, not for %s", excerpt(r.Host))
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
