package api

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/stallspan/stallspan/internal/state"
	"github.com/stallspan/stallspan/internal/trust"
)

// lockWait is how long Listen waits for other servers in the same folder. They need milliseconds.
const lockWait = 2 * time.Second

// SocketVariable is the environment variable with the path of the socket.
const SocketVariable = "STALLSPAN_SOCKET"

const (
	socketName   = "stallspan.sock"
	lockName     = ".stallspan.lock"
	systemSocket = "/run/stallspan/" + socketName
	// collectorSocket is that of the packaged Collector (packaging/, docs/install.md).
	collectorSocket = "/run/otelcol-stallspan/" + socketName
)

// elsewhere says how to set another path, for the agent, the receiver and record.
const elsewhere = "set another path (the setting socket, or " + SocketVariable + ")"

// maxPath is the limit of a socket's path, in bytes: sun_path without its final NUL (unix(7)).
const maxPath = 107

// DefaultSocket returns the path of the socket if none is configured: STALLSPAN_SOCKET, or a path in /run/stallspan for
// root, in $XDG_RUNTIME_DIR/stallspan, or in a folder of the user in the temporary one.
func DefaultSocket() string {
	if path := os.Getenv(SocketVariable); path != "" {
		return path
	}
	if os.Geteuid() == 0 {
		return systemSocket
	}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "stallspan", socketName)
	}
	return filepath.Join(os.TempDir(), "stallspan-"+strconv.Itoa(os.Geteuid()), socketName)
}

// AgentSockets returns the sockets where an agent or a Collector of this machine may serve this user: the default one,
// and those of root or of a service.
func AgentSockets() []string {
	all := []string{DefaultSocket()}
	for _, path := range []string{systemSocket, collectorSocket} {
		if path != all[0] {
			all = append(all, path)
		}
	}
	return all
}

// ClientSocket returns the socket that a client of this user asks: STALLSPAN_SOCKET, or else the first one of
// AgentSockets that accepts connections. If none does, it is one that this user may not open, or the default one, so
// that the error of a request says what is wrong.
func ClientSocket() string {
	if path := os.Getenv(SocketVariable); path != "" {
		return path
	}
	return firstServed(AgentSockets())
}

// probeTimeout is how long a server may take to accept a connection.
const probeTimeout = 300 * time.Millisecond

func firstServed(paths []string) string {
	closed := ""
	for _, path := range paths {
		connection, err := net.DialTimeout("unix", path, probeTimeout)
		if err == nil {
			_ = connection.Close()
			return path
		}
		if errors.Is(err, fs.ErrPermission) && closed == "" {
			closed = path
		}
	}
	return cmp.Or(closed, paths[0])
}

// Listen opens a unix socket at path with mode 0660. It creates a missing folder with mode 0700. The socket appears
// under its name when it has its mode and accepts connections. Listen replaces a socket without a server. It returns an
// error if a server uses the socket, or if the file is not a socket. Close removes the file if it is still this socket.
func Listen(path string) (net.Listener, error) {
	dir := filepath.Dir(path)
	draft := filepath.Join(dir, "."+rand.Text()[:7])
	if err := checkPath(path, draft); err != nil {
		return nil, err
	}
	if err := makeFolder(dir); err != nil {
		return nil, err
	}
	unlock, err := lockIn(dir) // so that two servers do not replace an old socket at once
	if err != nil {
		return nil, fmt.Errorf("cannot create a socket at %s, check the folder's permissions or %s: %w", path, elsewhere, err)
	}
	defer unlock()
	if err := checkVacant(path); err != nil {
		return nil, err
	}
	l, err := bind(draft, path)
	if err != nil {
		return nil, fmt.Errorf("cannot create a socket at %s, check the folder's permissions or %s: %w", path, elsewhere, err)
	}
	return l, nil
}

func checkPath(path, draft string) error {
	switch longest := max(len(path), len(draft)); {
	case path == "":
		return fmt.Errorf("the socket's path is empty: %s", elsewhere)
	case strings.HasPrefix(path, "@") || strings.ContainsRune(path, 0):
		return fmt.Errorf("%q is not the path of a file: %s", path, elsewhere)
	case longest > maxPath:
		return fmt.Errorf("the socket's path %s needs %d bytes, and the limit is %d: %s",
			path, longest, maxPath, elsewhere)
	}
	return nil
}

func makeFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("cannot create the socket's folder, %s: %w", elsewhere, err)
	}
	target, err := trust.Follow(dir)
	if err == nil {
		err = trust.Folder(target)
	}
	if err != nil {
		return fmt.Errorf("%w, or %s", err, elsewhere)
	}
	return nil
}

// lockIn takes a lock that only this user can hold: who may read a folder could lock the folder itself for ever.
func lockIn(dir string) (unlock func(), err error) {
	path := filepath.Join(dir, lockName)
	for end := time.Now().Add(lockWait); ; {
		file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
		if err != nil {
			return nil, err
		}
		err = state.Lock(file, time.Until(end))
		own, statErr := file.Stat()
		now, gone := os.Lstat(path)
		switch {
		case errors.Join(err, statErr) != nil:
			_ = file.Close()
			return nil, fmt.Errorf("lock %s: %w", path, errors.Join(err, statErr))
		case gone == nil && os.SameFile(own, now):
			return func() {
				_ = os.Remove(path)
				_ = file.Close()
			}, nil
		}
		_ = file.Close() // the holder before has removed it, and another server may have locked a new one
	}
}

// checkVacant returns an error if no socket can be created at path.
func checkVacant(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%s is not a socket: move it away, or %s", path, elsewhere)
	}
	conn, err := net.DialTimeout("unix", path, time.Second)
	switch {
	case err == nil:
		_ = conn.Close()
		fallthrough
	case errors.Is(err, syscall.EAGAIN): // its queue is full, so a server has it
		return fmt.Errorf("another stallspan serves %s: stop it, or %s", path, elsewhere)
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, fs.ErrNotExist):
		return nil
	default:
		return fmt.Errorf("%s may belong to another program: remove it if it does not, or %s: %w", path, elsewhere, err)
	}
}

func bind(draft, path string) (net.Listener, error) {
	config := net.ListenConfig{Control: bornPrivate}
	l, err := config.Listen(context.Background(), "unix", draft)
	if err != nil {
		return nil, err
	}
	s := &socket{Listener: l, path: path}
	if unix, ok := l.(*net.UnixListener); ok {
		unix.SetUnlinkOnClose(false)
	}
	if err = os.Chmod(draft, 0o660); err == nil { //nolint:gosec // the group of the folder may announce windows, too
		if s.file, err = os.Lstat(draft); err == nil {
			err = os.Rename(draft, path)
		}
	}
	if err != nil {
		_ = os.Remove(draft)
		_ = l.Close()
		return nil, err
	}
	return s, nil
}

// socket is a listener that removes its file when it is closed.
type socket struct {
	net.Listener
	path string
	file fs.FileInfo
	once sync.Once
	err  error
}

// Addr returns the path for clients, which differs from the name that the socket was bound to.
func (s *socket) Addr() net.Addr { return &net.UnixAddr{Name: s.path, Net: "unix"} }

// Close removes the file before it closes the socket, so that no other server can have replaced it.
func (s *socket) Close() error {
	s.once.Do(func() {
		if now, err := os.Lstat(s.path); err == nil && os.SameFile(now, s.file) {
			s.err = os.Remove(s.path)
		}
		s.err = errors.Join(s.err, s.Listener.Close())
	})
	return s.err
}

// bornPrivate is a net.ListenConfig.Control. The file that bind creates takes its mode from the inode of the socket. So
// other users can never open it, whatever the umask is, and the umask of the process stays as it is.
func bornPrivate(_, _ string, c syscall.RawConn) error {
	var failed error
	if err := c.Control(func(fd uintptr) { failed = syscall.Fchmod(int(fd), 0o600) }); err != nil {
		return err
	}
	return failed
}

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

// ErrOpen is the error of a port that other machines reach, where that needs more than is set.
var ErrOpen = errors.New("is open to other machines: use localhost")

// ListenLoopback opens a port that only this machine reaches.
func ListenLoopback(endpoint string) (net.Listener, error) {
	l, err := ListenTCP(endpoint, []byte("a key of its own"))
	if err == nil && !onLoopback(l.Addr()) {
		_ = l.Close()
		return nil, fmt.Errorf("%s %w", endpoint, ErrOpen)
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
			if !bears(r, s.token) {
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

// bears reports whether a request has a token. The time that this takes does not depend on the text.
func bears(r *http.Request, token []byte) bool {
	const scheme = "bearer "
	text := r.Header.Get("Authorization")
	if len(text) < len(scheme) || !strings.EqualFold(text[:len(scheme)], scheme) {
		return false
	}
	got, want := sha256.Sum256([]byte(text[len(scheme):])), sha256.Sum256(token)
	return subtle.ConstantTimeCompare(got[:], want[:]) == 1
}

// ClientOver returns the name of a client over TCP, from the address of a request.
func ClientOver(remote string) string {
	at, _ := netip.ParseAddrPort(remote) // an invalid one is of no client from elsewhere
	return nameOver(net.TCPAddrFromAddrPort(at))
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
