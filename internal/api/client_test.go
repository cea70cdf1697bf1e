package api

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stallspan/stallspan/internal/window"
)

func TestClient(t *testing.T) {
	s := serve(t, nil)
	epoch := 0
	begun, err := s.Begin(t.Context(), Announcement{Kind: window.Epoch, Epoch: &epoch,
		Attributes: map[string]string{"a": "<&>"}})
	if err != nil {
		t.Fatal(err)
	}
	if w := s.opener.windows[0]; !w.HasEpoch || w.Attributes["a"] != "<&>" {
		t.Errorf("got window %+v, want that of the announcement", w)
	}
	text, err := s.End(t.Context(), begun.ID)
	if got := parseAs[report](t, string(text)); err != nil || got.ID != begun.ID || got.Epoch == nil {
		t.Errorf("got %s, %v; want a report", text, err)
	}
	var refused *Error
	failed, err := s.Begin(t.Context(), Announcement{Kind: window.Epoch})
	if err != nil {
		t.Fatal(err)
	}
	if text, err := s.Cut(t.Context(), failed.ID, window.Outcome{Failed: true}); err != nil || !strings.Contains(string(text), `"unfinished":true`) {
		t.Errorf("got %s, %v; want an unfinished report", text, err)
	}
	if _, err = s.End(t.Context(), "../status"); !errors.As(err, &refused) || refused.Status != http.StatusNotFound {
		t.Errorf("unknown window: got %v, want an *Error with 404", err)
	}
	if _, err = s.Begin(t.Context(), Announcement{Kind: "epcoh"}); !errors.As(err, &refused) ||
		refused.Status != http.StatusBadRequest {
		t.Errorf("unknown kind: got %v, want an *Error with 400", err)
	}
}

func TestClientStatus(t *testing.T) {
	s := serve(t, nil)
	status, err := s.Status(t.Context())
	if err != nil || status.Version == "" || status.Interval <= 0 || status.Problems == nil {
		t.Errorf("got %+v, %v; want the status", status, err)
	}
	root := os.Geteuid() == 0
	if len(status.Disks) == 0 || status.GPUs == nil || status.Rights.OtherUsers != root || status.Export != nil {
		t.Errorf("got %+v, want disks, a list of GPUs, root's rights, and no export", status)
	}
}

func TestClientWithoutAServer(t *testing.T) {
	dir := folder(t)
	stale := filepath.Join(dir, "stale")
	leaveStale(t, stale)
	for _, path := range []string{stale, filepath.Join(dir, "absent")} {
		_, err := NewClient(path).Begin(t.Context(), Announcement{Kind: window.Epoch})
		if err == nil || !strings.HasPrefix(err.Error(), "no server answers on "+path+": start stallspan") {
			t.Errorf("got %v, want no server on %s", err, path)
		}
	}
}

// TestClientOfSomethingElse connects to servers of other protocols.
func TestClientOfSomethingElse(t *testing.T) {
	for answer, want := range map[string]string{
		"":                               "no response on",
		"220 mail.example.com ESMTP\r\n": "no response on",
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello":                          `is not stallspan, set STALLSPAN_SOCKET to another path: it sent "hello"`,
		"HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n\r\nhello":                   "is not stallspan",
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}":                             "is not stallspan",
		"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{}":                            "no response on",
		"HTTP/1.1 200 OK\r\n\r\n" + strings.Repeat("x", 1<<20):                       "is not stallspan",
		"HTTP/1.1 400 Bad Request\r\nContent-Length: 15\r\n\r\n" + `{"error":"why"}`: "why",
	} {
		l, err := Listen(filepath.Join(folder(t), "s"))
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			serveOnce(l, answer)
		}()
		_, err = NewClient(l.Addr().String()).Begin(t.Context(), Announcement{Kind: window.Epoch})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.40q: %v, want %q", answer, err, want)
		}
		<-done
		_ = l.Close()
	}
}

// serveOnce reads a request's header and sends a fixed response.
func serveOnce(l net.Listener, answer string) {
	c, err := l.Accept()
	if err != nil {
		return
	}
	defer func() { _ = c.Close() }()
	_, _ = c.Read(make([]byte, 64<<10))
	_, _ = io.WriteString(c, answer)
}
