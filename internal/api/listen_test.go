package api

import (
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// leaveStale creates a socket without a server at path, as a crash leaves it.
func leaveStale(t *testing.T, path string) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	_ = l.Close()
}

func TestListenMakesFolderAndSocket(t *testing.T) {
	dir := filepath.Join(folder(t), "a", "b")
	path := filepath.Join(dir, "s")
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]fs.FileMode{dir: fs.ModeDir | 0o700, path: fs.ModeSocket | 0o660} {
		if info, err := os.Stat(name); err != nil || info.Mode() != want {
			t.Errorf("%s: %v %v, want %v", name, info.Mode(), err, want)
		}
	}
	if l.Addr().String() != path {
		t.Errorf("got address %v, want %s", l.Addr(), path)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("got files %v, want the socket alone", left)
	}
	for range 2 {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("got files %v after Close, want none", left)
	}
}

func TestListenTakesOverAStaleSocket(t *testing.T) {
	path := filepath.Join(folder(t), "s")
	leaveStale(t, path)
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
}

func TestListenRefuses(t *testing.T) {
	dir := folder(t)
	at := func(name string) string { return filepath.Join(dir, name) }
	live, err := Listen(at("live"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = live.Close() }()
	datagrams, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: at("datagrams"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = datagrams.Close() }()
	if err := os.WriteFile(at("file"), []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(at("live"), at("link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(at("open"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(at("open"), 0o777); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		at("live"):                      "another stallspan serves " + at("live") + ": stop it, or " + elsewhere,
		at("file"):                      at("file") + " is not a socket: move it away",
		at("link"):                      at("link") + " is not a socket",
		at("open"):                      at("open") + " is not a socket",
		at("datagrams"):                 "may belong to another program",
		at("file/s"):                    "cannot create the socket's folder",
		at("open/s"):                    "all users may replace files in " + at("open") + ": run chmod o-w on it",
		at(strings.Repeat("x", 100)):    "bytes, and the limit is 107: " + elsewhere,
		"":                              "path is empty",
		"@abstract":                     "is not the path of a file",
		at("with\x00nul"):               "is not the path of a file",
		"/proc/stallspan/s":             "cannot create the socket's folder",
		"/proc/self/stallspan-test.sck": "cannot create a socket at /proc/self/stallspan-test.sck",
	} {
		l, err := Listen(path)
		if err == nil {
			_ = l.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: got %v, want %q", path, err, want)
		}
	}
	if text, _ := os.ReadFile(at("file")); string(text) != "precious" {
		t.Errorf("got %q, want the file as it was", text)
	}
	if c, err := net.Dial("unix", at("live")); err != nil {
		t.Errorf("the live socket: got %v, want a connection", err)
	} else {
		_ = c.Close()
	}
}

func TestListenAtTheLongestPath(t *testing.T) {
	dir := folder(t)
	path := filepath.Join(dir, strings.Repeat("s", maxPath-len(dir)-1))
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if l, err := Listen(path + "s"); err == nil {
		_ = l.Close()
		t.Error("one byte over the limit: got no error")
	}
}

// TestListenRace starts many servers on one stale socket at once. One of them gets it.
func TestListenRace(t *testing.T) {
	path := filepath.Join(folder(t), "s")
	for range 20 {
		leaveStale(t, path)
		var wg sync.WaitGroup
		got := make(chan net.Listener, 8)
		for range cap(got) {
			wg.Go(func() {
				l, err := Listen(path)
				if err == nil {
					got <- l
				} else if !strings.Contains(err.Error(), "another stallspan serves") {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		close(got)
		if len(got) != 1 {
			t.Fatalf("got %d servers, want 1", len(got))
		}
		_ = (<-got).Close()
	}
}

// TestCloseLeavesAnothersSocket closes a listener whose file has been replaced.
func TestCloseLeavesAnothersSocket(t *testing.T) {
	path := filepath.Join(folder(t), "s")
	first, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	second, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	if err := second.Close(); err != nil {
		t.Error(err)
	}
}

func TestDefaultSocket(t *testing.T) {
	t.Setenv(SocketVariable, "")
	t.Setenv("XDG_RUNTIME_DIR", "/run/user/7")
	t.Setenv("TMPDIR", "/scratch")
	if os.Geteuid() == 0 {
		if got := DefaultSocket(); got != "/run/stallspan/stallspan.sock" {
			t.Errorf("root: %s", got)
		}
	} else {
		if got := DefaultSocket(); got != "/run/user/7/stallspan/stallspan.sock" {
			t.Errorf("in a session: %s", got)
		}
		t.Setenv("XDG_RUNTIME_DIR", "relative")
		if got := DefaultSocket(); got != "/scratch/stallspan-"+strconv.Itoa(os.Geteuid())+"/stallspan.sock" {
			t.Errorf("without one: %s", got)
		}
	}
	t.Setenv(SocketVariable, "/x/y")
	if got := DefaultSocket(); got != "/x/y" {
		t.Errorf("as it was set: %s", got)
	}
}
