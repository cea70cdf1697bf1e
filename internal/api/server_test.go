package api

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/internal/config"
	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/window"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const someTrace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// opener opens windows on a monitor of this machine, and records the calls.
type opener struct {
	monitor *monitor.Monitor

	mu      sync.Mutex
	windows []window.Window
	parents []trace.SpanContext
	ended   []map[string]string // the attributes of each end
}

func (o *opener) Begin(w window.Window, parent trace.SpanContext) (id, own string, err error) {
	o.mu.Lock()
	o.windows = append(o.windows, w)
	o.parents = append(o.parents, parent)
	o.mu.Unlock()
	id, err = o.monitor.Windows.Begin(w, o.monitor.Now())
	return id, someTrace, err
}

func (o *opener) End(id string, how window.Outcome, attributes map[string]string) (*window.Report, error) {
	o.mu.Lock()
	o.ended = append(o.ended, attributes)
	o.mu.Unlock()
	return o.monitor.Windows.Cut(id, o.monitor.Now(), how)
}

// service is a server on a real socket that watches this machine.
type service struct {
	*Client
	path    string
	opener  *opener
	monitor *monitor.Monitor
	server  *Server
	stop    func() error
}

// serve starts a server. change, if set, alters it before it serves.
func serve(t testing.TB, change func(*Server)) *service {
	t.Helper()
	m, err := monitor.New(monitor.Config{})
	if err != nil {
		t.Fatal(err)
	}
	m.Start()
	t.Cleanup(m.Stop)
	path := filepath.Join(folder(t), "s")
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	o := &opener{monitor: m}
	s := NewServer(m, o, "v1.2.3")
	if change != nil {
		change(s)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	stop := sync.OnceValue(func() error {
		cancel()
		return <-done
	})
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	return &service{Client: patient(path), path: path, opener: o, monitor: m, server: s, stop: stop}
}

// patient returns a client with time for a machine under load, on which the detector of races looks for them.
func patient(path string) *Client {
	client := NewClient(path)
	client.http.Timeout = 2 * time.Minute
	return client
}

// folder returns a temporary folder with a short name: a socket's path has at most 107 bytes.
func folder(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "api")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func (s *service) dial(t testing.TB) *net.UnixConn {
	t.Helper()
	c, err := net.Dial("unix", s.path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c.(*net.UnixConn)
}

// do sends one request and returns the status, the header and the body of the response.
func (s *service) do(t testing.TB, method, path, body string, header ...string) (int, http.Header, string) {
	t.Helper()
	request, err := http.NewRequest(method, "http://localhost"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := s.http.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, response.Header, string(text)
}

// report is the part of a report's JSON that these tests read.
type report struct {
	ID       string  `json:"id"`
	Kind     string  `json:"kind"`
	Epoch    *int    `json:"epoch"`
	Source   string  `json:"source"`
	Duration float64 `json:"duration_s"`
	Verdict  string  `json:"verdict"`
}

func parseAs[T any](t testing.TB, text string) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}

func TestWindowFromBeginToEnd(t *testing.T) {
	s := serve(t, nil)
	status, header, body := s.do(t, "POST", "/v1/windows", `{"kind":"epoch","name":"n","model":"m","epoch":3,"path":"/p",
		"gpu_ids":["GPU-1"],"traceparent":"`+someTrace+`","attributes":{"a":"b"}}`)
	begun := parseAs[Begun](t, body)
	if status != http.StatusCreated || begun.ID == "" || begun.Traceparent != someTrace ||
		header.Get("Location") != "/v1/windows/"+begun.ID {
		t.Fatalf("got %d %v %s, want 201 with an ID", status, header, body)
	}
	w := s.opener.windows[0]
	if w.Kind != window.Epoch || w.Name != "n" || w.Model != "m" || w.Epoch != 3 || !w.HasEpoch || w.Path != "/p" ||
		len(w.GPUs) != 1 || w.GPUs[0] != "GPU-1" || w.Attributes["a"] != "b" || w.Source != window.Announced ||
		emit.Traceparent(s.opener.parents[0]) != someTrace {
		t.Errorf("got window %+v with parent %v, want that of the announcement", w, s.opener.parents[0])
	}
	if callers := os.Getpid(); w.PID != callers || !w.ByClient {
		t.Errorf("got pid %d, by client: %v, want %d of the caller", w.PID, w.ByClient, callers)
	}

	type list struct{ Running, Ended []report }
	status, _, body = s.do(t, "GET", "/v1/windows", "")
	if got := parseAs[list](t, body); status != http.StatusOK || len(got.Running) != 1 || got.Running[0].ID != begun.ID ||
		len(got.Ended) != 0 {
		t.Errorf("got %d %s, want 200 and the window", status, body)
	}
	status, _, body = s.do(t, "GET", "/v1/windows/"+begun.ID, "")
	if got := parseAs[report](t, body); status != http.StatusOK || got.ID != begun.ID || got.Source != "announced" {
		t.Errorf("got %d %s, want 200 and the window", status, body)
	}
	status, _, body = s.do(t, "POST", "/v1/windows/"+begun.ID+"/end", "")
	if got := parseAs[report](t, body); status != http.StatusOK || got.Kind != "epoch" || got.Epoch == nil ||
		*got.Epoch != 3 || got.Duration <= 0 {
		t.Errorf("got %d %s, want 200 and the window", status, body)
	}
	status, _, body = s.do(t, "GET", "/v1/windows", "")
	if got := parseAs[list](t, body); status != http.StatusOK || len(got.Running) != 0 || len(got.Ended) != 1 ||
		got.Ended[0].ID != begun.ID {
		t.Errorf("got %d %s, want 200 and the window", status, body)
	}
	if status, _, body = s.do(t, "GET", "/v1/windows/"+begun.ID, ""); status != http.StatusOK {
		t.Errorf("the report of an ended window: got %d %s, want 200", status, body)
	}
	status, _, body = s.do(t, "POST", "/v1/windows/"+begun.ID+"/end", "{}")
	if got := parseAs[Error](t, body); status != http.StatusNotFound ||
		!strings.Contains(got.Text, "has ended already: see stallspan ls --id "+begun.ID) {
		t.Errorf("ended twice: got %d %s, want 404", status, body)
	}
}

func TestStatus(t *testing.T) {
	s := serve(t, nil)
	if _, err := s.Begin(t.Context(), Announcement{Kind: window.Custom, PID: 1}); err != nil {
		t.Fatal(err)
	}
	code, _, body := s.do(t, "GET", "/v1/status", "")
	got := parseAs[Status](t, body)
	if code != http.StatusOK || got.Version != "v1.2.3" || got.Interval != config.DefaultInterval.Seconds() ||
		got.Uptime <= 0 || got.WindowsOpen != 1 || got.Problems == nil {
		t.Errorf("got %d %s, want 200 and the status", code, body)
	}
	if s.opener.windows[0].PID != 1 {
		t.Errorf("got pid %d, want 1 of the announcement", s.opener.windows[0].PID)
	}
}

// TestStopLetsRequestsFinish stops the server while a request waits for the rest of its body.
func TestStopLetsRequestsFinish(t *testing.T) {
	s := serve(t, nil)
	c := s.dial(t)
	body := `{"kind":"epoch"}`
	if _, err := io.WriteString(c, header+"16\r\nExpect: 100-continue\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 4096)
	n, err := c.Read(buf) // the server asks for the body: the request is in progress
	if err != nil || !strings.HasPrefix(string(buf[:n]), "HTTP/1.1 100 ") {
		t.Fatalf("got %q, %v; want 100 Continue", buf[:n], err)
	}
	stopped := make(chan error)
	go func() { stopped <- s.stop() }()
	for { // gone from its path: the server is stopping
		if _, err := os.Lstat(s.path); err != nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if _, err := io.WriteString(c, body); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(c)
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 201 ") {
		t.Errorf("got %q, %v; want 201", answer, err)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

// TestStopDisconnectsSlowClients leaves a request half sent.
func TestStopDisconnectsSlowClients(t *testing.T) {
	s := serve(t, func(s *Server) { s.http.ReadTimeout, s.http.ReadHeaderTimeout = time.Hour, time.Hour })
	c := s.dial(t)
	if _, err := io.WriteString(c, header+"16\r\nExpect: 100-continue\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 4096)); err != nil {
		t.Fatal(err)
	}
	if err := s.stop(); err != nil {
		t.Error(err)
	}
	_, _ = io.ReadAll(c) // ends: the connection is closed
}

func TestServeWithBrokenListener(t *testing.T) {
	s := serve(t, nil)
	l, err := Listen(filepath.Join(folder(t), "s"))
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	err = NewServer(s.monitor, s.opener, "").Serve(t.Context(), l)
	if err == nil || !strings.Contains(err.Error(), "has stopped") {
		t.Errorf("got %v, want an error of the listener", err)
	}
}
