package api

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
)

// ListenTCP opens a port. "4319" and ":4319" are on loopback; other addresses need a host, and a token: see
// Server.Requiring.
func ListenTCP(endpoint string, token []byte) (net.Listener, error) {
	address, err := Endpoint(endpoint)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s, choose another port: %w", endpoint, err)
	}
	if !onLoopback(l.Addr()) && len(token) == 0 {
		_ = l.Close()
		return nil, fmt.Errorf("%s is open to other machines: set token_file, or use localhost", endpoint)
	}
	return l, nil
}

// ListenLoopback opens a port that only this machine reaches.
func ListenLoopback(endpoint string) (net.Listener, error) {
	l, err := ListenTCP(endpoint, []byte("a key of its own"))
	if err == nil && !onLoopback(l.Addr()) {
		_ = l.Close()
		return nil, fmt.Errorf("%s is open to other machines: use localhost", endpoint)
	}
	return l, err
}

func onLoopback(a net.Addr) bool {
	at, ok := a.(*net.TCPAddr)
	return ok && at.IP.IsLoopback()
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

// admitTCP refuses requests over TCP without the server's token. A loopback port may have none. Then requests that name
// another host are refused: a page in a browser can reach the port under a name that resolves to this machine (DNS
// rebinding), but it cannot hide that name.
func (s *Server) admitTCP(next http.Handler) http.Handler {
	return handler(func(w http.ResponseWriter, r *http.Request) error {
		switch {
		case s.local:
		case len(s.token) > 0 && isShell(r): // it asks its reader for the token
		case len(s.token) > 0:
			if !s.bears(r) {
				w.Header().Set("WWW-Authenticate", "Bearer")
				return refuse(http.StatusUnauthorized, "this port needs the text of the server's token_file: set %s, or send it "+
					"in the header Authorization: Bearer", TokenVariable)
			}
			peerOfRequest(r.Context()).trusted = true
		case !s.loopback:
			return refuse(http.StatusForbidden, "this port is open to other machines and has no token: set token_file")
		case !IsLocal(r.Host):
			return refuse(http.StatusForbidden, "this port is for programs on this machine: use localhost, not %s",
				excerpt(r.Host))
		}
		next.ServeHTTP(w, r)
		return nil
	})
}

// bears reports whether a request has the server's token. The time that this takes does not depend on the text.
func (s *Server) bears(r *http.Request) bool {
	const scheme = "bearer "
	text := r.Header.Get("Authorization")
	if len(text) < len(scheme) || !strings.EqualFold(text[:len(scheme)], scheme) {
		return false
	}
	got, want := sha256.Sum256([]byte(text[len(scheme):])), sha256.Sum256(s.token)
	return subtle.ConstantTimeCompare(got[:], want[:]) == 1
}

// IsLocal reports whether the Host of a request names this machine as such. A page in a browser can reach a loopback
// port under another name that resolves to it, but cannot hide that name.
func IsLocal(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	address, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && address.IsLoopback()
}
