package scrape

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/bcrypt"

	"github.com/stallspan/stallspan/internal/api"
)

// users is the text of a web_config with one user, whose password is "open".
func users(t *testing.T) string {
	t.Helper()
	hash, err := bcrypt.GenerateFromPassword([]byte("open"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("basic_auth_users:\n  prom: %q\n", hash)
}

// write replaces the text of a file in one step.
func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	err := os.WriteFile(path+".new", []byte(text), 0o600)
	if err := errors.Join(err, os.Chmod(path+".new", mode), os.Rename(path+".new", path)); err != nil {
		t.Fatal(err)
	}
}

// serving serves with a web_config, and returns where.
func serving(t *testing.T, path string) (address string) {
	t.Helper()
	s, err := (&Config{Endpoint: "0", WebConfig: path}).Listen()
	if err != nil {
		t.Fatal(err)
	}
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "all") })
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, api.Scraped{All: page, Machine: page}) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s.URL() + "/metrics"
}

// status asks for metrics, with a password if that is not "".
func status(t *testing.T, address, password string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	if password != "" {
		request.SetBasicAuth("prom", password)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	return response.StatusCode
}

// Whatever is written to the file of passwords, no one gets the metrics without one.
func TestFileOfPasswordsChanges(t *testing.T) {
	text, path := users(t), filepath.Join(t.TempDir(), "web.yaml")
	write(t, path, text, 0o600)
	address := serving(t, path)
	want := func(what string, without, with int) {
		t.Helper()
		if a, b := status(t, address, ""), status(t, address, "open"); a != without || b != with {
			t.Errorf("%s: got %d without a password and %d with it, want %d and %d", what, a, b, without, with)
		}
	}
	want("at the start", 401, 200)
	for what, changed := range map[string]string{
		"emptied": "", "without keys": "{}", "without users": "basic_auth_users:\n", "no users": "basic_auth_users: {}\n",
		"cut": text[:len(text)-20], "cut before the users": text[:10], "of another form": "users: {a: b}\n", "a comment": "# off\n",
		"with TLS": text + "tls_server_config: {cert_file: a, key_file: b}\n",
	} {
		write(t, path, changed, 0o600)
		want(what, 503, 503)
	}
	write(t, path, text, 0o604)
	want("readable by others", 503, 503)
	write(t, path, text, 0o602)
	want("writable by others", 503, 503)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	want("removed", 503, 503)
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	want("a folder", 503, 503)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	write(t, path, text+"http_server_config: {headers: {X-Frame-Options: deny}}\n", 0o600)
	want("as before", 401, 200)
}

// An editor that writes the file in place leaves no moment without a password.
func TestFileIsEditedInPlace(t *testing.T) {
	text, path := users(t), filepath.Join(t.TempDir(), "web.yaml")
	write(t, path, text, 0o600)
	address := serving(t, path)
	done := make(chan struct{})
	var editor sync.WaitGroup
	editor.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil { // truncates it first
					t.Error(err)
				}
			}
		}
	})
	got := map[int]int{}
	for i := 0; i < 300 || i < 10_000 && len(got) < 2; i++ {
		got[status(t, address, "")]++
	}
	close(done)
	editor.Wait()
	if got[401] == 0 || got[503] == 0 || len(got) != 2 {
		t.Errorf("got %v, want 401, and 503 while the file is empty", got)
	}
}

// Random passwords of one address cost another one nothing, nor one that has named itself.
func TestRandomPasswords(t *testing.T) {
	path := filepath.Join(t.TempDir(), "web.yaml")
	write(t, path, users(t), 0o600)
	now, err := (&Config{Endpoint: "0", WebConfig: path}).read()
	if err != nil {
		t.Fatal(err)
	}
	g := newGuard(now.RateLimiterConfig)
	ask := func(from, name, password string) int {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil)
		r.RemoteAddr = from
		r.SetBasicAuth(name, password)
		answer := httptest.NewRecorder()
		g.admits(answer, r, now)
		return answer.Code
	}
	if got := ask("10.0.0.1:1", "prom", "open"); got != 200 {
		t.Errorf("the first: got %d, want 200", got)
	}
	for i := range 40 { // of ports and, for one host, of addresses
		codes := map[string]int{}
		for range 20 {
			codes[strconv.Itoa(ask(fmt.Sprintf("10.0.0.2:%d", i), "prom", strconv.Itoa(i)))]++
			codes[strconv.Itoa(ask(fmt.Sprintf("[2001:db8::%d]:1", i), "prom", strconv.Itoa(i)))]++
		}
		if i > maxCompared/4 && codes["429"] != 40 {
			t.Errorf("guess %d: got %v, want 429", i, codes)
		}
	}
	for _, from := range []string{"10.0.0.1:2", "10.0.0.3:1", "[2001:db8:0:1::1]:1"} {
		if got := ask(from, "prom", "open"); got != 200 {
			t.Errorf("%s with the password: got %d, want 200", from, got)
		}
	}
	if got := ask("10.0.0.4:1", "nobody", "fakepassword"); got != 401 {
		t.Errorf("an unknown user: got %d, want 401", got)
	}
}

// from is a connection of an address.
type from struct {
	net.Conn
	address net.Addr
}

func (f from) RemoteAddr() net.Addr { return f.address }

// queue is a listener with these connections.
type queue struct {
	net.Listener
	conns []net.Conn
}

func (q *queue) Accept() (conn net.Conn, err error) {
	if len(q.conns) == 0 {
		return nil, net.ErrClosed
	}
	conn, q.conns = q.conns[0], q.conns[1:]
	return conn, nil
}

// One address cannot hold all connections.
func TestConnectionsOfOneAddress(t *testing.T) {
	var waiting queue
	connect := func(address string) {
		server, client := net.Pipe()
		t.Cleanup(func() { _, _ = server.Close(), client.Close() })
		waiting.conns = append(waiting.conns, from{server, &net.TCPAddr{IP: net.ParseIP(address), Port: 1}})
	}
	for range 2 * maxConnections {
		connect("10.0.0.1")
	}
	connect("10.0.0.2")
	l := api.Shared(&waiting, maxConnections)
	var open []net.Conn
	for {
		conn, err := l.Accept()
		if err != nil {
			break
		}
		open = append(open, conn)
	}
	if n := len(open); n != maxConnections/4+1 || !strings.HasPrefix(open[n-1].RemoteAddr().String(), "10.0.0.2:") {
		t.Fatalf("got %d connections, want %d and that of another address", n, maxConnections/4)
	}
	for _, conn := range open {
		_, _ = conn.Close(), conn.Close()
	}
	for range 2 * maxConnections {
		connect("10.0.0.1")
	}
	again := 0
	for ; ; again++ {
		if _, err := l.Accept(); err != nil {
			break
		}
	}
	if again != maxConnections/4 {
		t.Errorf("after their end: got %d connections, want %d", again, maxConnections/4)
	}
}
