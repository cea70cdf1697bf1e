package api

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stallspan/stallspan/internal/identity/locate"
	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/window"
)

const someToken = "0123456789abcdef0123456789abcdef"

// serveTCP starts a server on a loopback port and returns its address.
func serveTCP(t *testing.T, token string) string {
	t.Helper()
	m, err := monitor.New(monitor.Config{})
	if err != nil {
		t.Fatal(err)
	}
	m.Start()
	t.Cleanup(m.Stop)
	l, err := ListenTCP("127.0.0.1:0", nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- NewServer(m, &opener{monitor: m}, "v1").Requiring([]byte(token)).Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

func tokenAt(t *testing.T, text string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "token")
	if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chmod(path, mode)); err != nil {
		t.Fatal(err)
	}
	return path
}

// Each request over TCP needs the token, whatever host it names. Pages of other sites are refused even with it.
func TestToken(t *testing.T) {
	address := serveTCP(t, someToken)
	for _, test := range []struct {
		name, authorization, host, origin string
		want                              int
	}{
		{"none", "", "", "", http.StatusUnauthorized},
		{"right", "Bearer " + someToken, "", "", http.StatusOK},
		{"right, lower case", "bearer " + someToken, "", "", http.StatusOK},
		{"right, another name", "Bearer " + someToken, "node-7:4319", "", http.StatusOK},
		{"wrong", "Bearer " + someToken[1:], "", "", http.StatusUnauthorized},
		{"longer", "Bearer " + someToken + "0", "", "", http.StatusUnauthorized},
		{"another scheme", "Basic " + someToken, "", "", http.StatusUnauthorized},
		{"a page", "Bearer " + someToken, "", "http://example.com", http.StatusForbidden},
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/v1/status", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		request.Host, request.Close = test.host, true
		if test.authorization != "" {
			request.Header.Set("Authorization", test.authorization)
		}
		if test.origin != "" {
			request.Header.Set("Origin", test.origin)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != test.want {
			t.Errorf("%s: got %s, want %d", test.name, response.Status, test.want)
		}
		if challenge := response.Header.Get("WWW-Authenticate"); (challenge == "Bearer") != (test.want == 401) {
			t.Errorf("%s: got the challenge %q", test.name, challenge)
		}
	}
}

// A port that other machines reach needs a token.
func TestListenTCPNeedsAToken(t *testing.T) {
	for endpoint, token := range map[string]string{
		"0.0.0.0:0": "", "[::]:0": "", "127.0.0.1:0": "", "0.0.0.0:00": someToken,
	} {
		l, err := ListenTCP(endpoint, []byte(token))
		if want := token != "" || strings.HasPrefix(endpoint, "127."); (err == nil) != want {
			t.Errorf("%s with the token %q: got %v, want accepted %v", endpoint, token, err, want)
		}
		if err == nil {
			_ = l.Close()
		}
	}
	m, err := monitor.New(monitor.Config{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "0.0.0.0:0") // opened by other means
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- NewServer(m, nil, "").Serve(ctx, l) }()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	_, err = newTCPClient("127.0.0.1:"+port, nil).Status(t.Context())
	if refused := new(Error); !errors.As(err, &refused) || refused.Status != http.StatusForbidden {
		t.Errorf("got %v, want status %d", err, http.StatusForbidden)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestReadToken(t *testing.T) {
	if got, err := ReadToken("token_file", tokenAt(t, someToken+"\n", 0o640)); string(got) != someToken || err != nil {
		t.Errorf("got %q, %v; want %s", got, err, someToken)
	}
	if got, err := ReadToken("token_file", ""); got != nil || err != nil {
		t.Errorf("no file: got %q, %v; want none", got, err)
	}
	for path, want := range map[string]string{
		tokenAt(t, someToken, 0o644):            "open to all users",
		tokenAt(t, "short", 0o600):              "write at least 16",
		tokenAt(t, someToken+"\r\nX: y", 0o600): "other characters",
		"token":                                 "absolute path",
		"/none/at/all":                          "cannot read",
	} {
		if got, err := ReadToken("token_file", path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %q, %v; want %q", path, got, err, want)
		}
	}
}

// Over TCP, only who has the token may name paths and processes of the machine.
func TestNamesOverTCP(t *testing.T) {
	for _, token := range []string{"", someToken} {
		t.Setenv(SocketVariable, "")
		t.Setenv(EndpointVariable, serveTCP(t, token))
		t.Setenv(TokenVariable, "")
		if token != "" {
			t.Setenv(TokenVariable, tokenAt(t, token, 0o600))
		}
		client, err := FromEnvironment()
		if err != nil || client.Local() {
			t.Fatalf("got %v, local %v; want a client over TCP", err, client.Local())
		}
		for name, a := range map[string]Announcement{
			"pid": {Kind: window.Custom, PID: os.Getpid()}, "path": {Kind: window.Custom, Path: "/etc/shadow"},
		} {
			_, err := client.Begin(t.Context(), a)
			if refused := errors.As(err, new(*Error)); (err == nil) != (token != "") || refused != (token == "") {
				t.Errorf("token %q, %s: got %v", token, name, err)
			}
		}
		begun, err := client.Begin(t.Context(), Announcement{Kind: window.Custom})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.End(t.Context(), begun.ID); err != nil {
			t.Errorf("token %q: got %v, want a report", token, err)
		}
	}
}

// Without a token, anyone may be at the other end of a loopback port: a window is read and ended by its ID alone, and
// is in no list.
func TestUnknownOverTCP(t *testing.T) {
	address := serveTCP(t, "")
	client := newTCPClient(address, nil)
	begun, err := client.Begin(t.Context(), Announcement{Kind: window.Custom, Name: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{
		"/v1/windows": http.StatusOK, "/v1/windows/" + begun.ID: http.StatusOK, "/v1/history": http.StatusForbidden,
		"/v1/status": http.StatusOK, "/v1/jobs": http.StatusOK, "/v1/page": http.StatusOK,
	} {
		response, err := http.Get("http://" + address + path)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		byID, shown := strings.HasSuffix(path, begun.ID), strings.Contains(string(text), "secret")
		if response.StatusCode != want || shown != byID {
			t.Errorf("%s: got %s with %s, want %d, and the window by its ID alone", path, response.Status, text, want)
		}
	}
	if _, err := client.End(t.Context(), begun.ID); err != nil {
		t.Errorf("the end by its ID: got %v, want a report", err)
	}
}

// Problems have names of jobs and paths, and are for callers who are known.
func TestProblemsForUnknown(t *testing.T) {
	for _, c := range []struct {
		who   caller
		texts bool
	}{
		{caller{uid: 0}, true}, {caller{uid: 1000, name: "uid 1000"}, true},
		{caller{uid: -1, name: locate.Unknown}, false}, {caller{uid: -1, tcp: true, name: overTCP}, false},
		{caller{uid: -1, tcp: true, name: overTCP, trusted: true}, true},
	} {
		got := c.who.problems([]string{"a path", "a job"})
		if texts := len(got) == 2; texts != c.texts || !texts && !strings.Contains(got[0], "2 problems") {
			t.Errorf("%+v: got %q, want the texts %v", c.who, got, c.texts)
		}
		if got := c.who.problems(nil); got != nil {
			t.Errorf("%+v: got %q, want no problem", c.who, got)
		}
	}
}

// Clients over TCP share by address, so that one machine cannot take the places of others.
func TestNameOver(t *testing.T) {
	for address, want := range map[string]string{
		"127.0.0.1:5": overTCP, "[::1]:5": overTCP, "10.1.2.3:5": "address 10.1.2.3", "[::ffff:10.1.2.3]:6": "address 10.1.2.3",
		"[2001:db8:1:2:3:4:5:6]:5": "network 2001:db8:1:2::/64",
	} {
		at, err := net.ResolveTCPAddr("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		if got := nameOver(at); got != want {
			t.Errorf("%s: got %q, want %q", address, got, want)
		}
	}
}
