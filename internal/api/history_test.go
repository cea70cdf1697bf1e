package api

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/store"
)

// kept is a past that is a text.
type kept struct {
	text  string
	err   error
	times []sample.GPUTime
	names []sample.JobName

	mu          sync.Mutex
	from, until time.Time
	all         bool
}

func (k *kept) Keep(time.Time, string, []byte) {}

func (k *kept) Copy(to io.Writer, from, until time.Time, shows func(store.Entry) bool) error {
	k.mu.Lock()
	k.from, k.until, k.all = from, until, shows == nil
	k.mu.Unlock()
	if _, err := io.WriteString(to, k.text); err != nil {
		return err
	}
	return k.err
}

func (k *kept) JobTimes(since, until time.Time) ([]sample.GPUTime, []sample.JobName, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.from, k.until = since, until
	return k.times, k.names, k.err
}

func (k *kept) Oldest() (time.Time, bool) { return time.Time{}, false }

func TestHistory(t *testing.T) {
	past := &kept{text: strings.Repeat("block", 100_000)}
	s := serve(t, func(s *Server) { s.Keeping(past) })
	from := time.Unix(1_764_000_000, 0)
	body, err := s.History(context.Background(), from, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = body.Close() }()
	got, err := io.ReadAll(body)
	if err != nil || !bytes.Equal(got, []byte(past.text)) {
		t.Errorf("got %d bytes, %v, want %d", len(got), err, len(past.text))
	}
	past.mu.Lock()
	defer past.mu.Unlock()
	if !past.from.Equal(from) || !past.until.IsZero() || !past.all {
		t.Errorf("got from %v until %v, all %v, want from %v and everything for the server's user", past.from, past.until,
			past.all, from)
	}
}

// Over TCP without a token, nothing is known of the caller.
func TestHistoryOfOthers(t *testing.T) {
	past := &kept{text: "x"}
	s := serve(t, func(s *Server) { s.Keeping(past) })
	who := &connected{caller: caller{uid: 1234, name: "uid 1234"}}
	request, err := http.NewRequestWithContext(context.WithValue(context.Background(), peerKey{}, who), http.MethodGet,
		"/v1/history", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	_ = s.server.history(&discarded{}, request) // it has no connection, so no deadline
	past.mu.Lock()
	defer past.mu.Unlock()
	if past.all {
		t.Error("another user got everything, want his own windows alone")
	}
}

type discarded struct{ http.ResponseWriter }

func (*discarded) Header() http.Header              { return http.Header{} }
func (*discarded) Write(b []byte) (int, error)      { return len(b), nil }
func (*discarded) SetWriteDeadline(time.Time) error { return nil }
func (*discarded) WriteHeader(int)                  {}

// A part is never taken for the whole.
func TestHistoryThatBreaksOff(t *testing.T) {
	broken := errors.New("the disk is broken")
	s := serve(t, func(s *Server) { s.Keeping(&kept{text: strings.Repeat("block", 100_000), err: broken}) })
	body, err := s.History(context.Background(), time.Time{}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = body.Close() }()
	if n, err := io.Copy(io.Discard, body); err == nil {
		t.Errorf("got %d bytes and no error, want one", n)
	}
}

func TestNoHistory(t *testing.T) {
	s := serve(t, nil)
	for path, want := range map[string]string{
		"/v1/history":           "keeps no history",
		"/v1/history?since=now": "a time in Unix seconds",
		"/v1/history?last=1":    "use since and until",
	} {
		if _, _, body := s.do(t, http.MethodGet, path, ""); !strings.Contains(body, want) {
			t.Errorf("%s: got %s, want %q", path, body, want)
		}
	}
	if _, err := s.History(context.Background(), time.Time{}, time.Time{}); err == nil {
		t.Error("got a history, want an error")
	}
}

// A disk of the history that hangs does not hold up other requests.
func TestHistoryThatHangs(t *testing.T) {
	s := serve(t, func(s *Server) { s.Keeping(&kept{text: "x"}) })
	for range maxListings {
		if err := s.server.copies.Take(""); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.History(context.Background(), time.Time{}, time.Time{}); err == nil ||
		!strings.Contains(err.Error(), "too many requests for the history") {
		t.Errorf("got %v, want that there are too many", err)
	}
	if _, err := s.Windows(context.Background()); err != nil {
		t.Errorf("a list of windows: got %v, want it", err)
	}
}

// TestPatientWriter: the time that making a response takes is not the client's.
func TestPatientWriter(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(100 * time.Millisecond)
		to := io.Writer(w)
		if r.URL.Path == "/patient" {
			to = newPatientWriter(w)
		}
		_, _ = io.WriteString(to, strings.Repeat("x", 1<<20))
	}))
	server.Config.WriteTimeout = 10 * time.Millisecond
	server.Start()
	defer server.Close()
	for path, want := range map[string]bool{"/patient": true, "/hasty": false} {
		whole := false
		if response, err := server.Client().Get(server.URL + path); err == nil {
			text, err := io.ReadAll(response.Body)
			_ = response.Body.Close()
			whole = err == nil && len(text) == 1<<20
		}
		if whole != want {
			t.Errorf("%s: got a whole response %v, want %v", path, whole, want)
		}
	}
}
