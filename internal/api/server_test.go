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

// door opens windows on a monitor of this machine, and remembers what it was asked for.
type door struct {
	monitor *monitor.Monitor

	mu      sync.Mutex
	windows []window.Window
	parents []trace.SpanContext
}

func (d *door) Begin(w window.Window, parent trace.SpanContext) (id, own string, err error) {
	d.mu.Lock()
	d.windows = append(d.windows, w)
	d.parents = append(d.parents, parent)
	d.mu.Unlock()
	id, err = d.monitor.Windows.Begin(w, d.monitor.Now())
	return id, someTrace, err
}

func (d *door) End(id string, failed bool) (*window.Report, error) {
	if failed {
		return d.monitor.Windows.Cut(id, d.monitor.Now())
	}
	return d.monitor.Windows.End(id, d.monitor.Now())
}

// service is a server on a real socket that watches this machine.
type service struct {
	*Client
	path    string
	door    *door
	monitor *monitor.Monitor
	server  *Server
	stop    func() error
}

// serve starts one; change may alter the server before it answers.
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
	d := &door{monitor: m}
	s := NewServer(m, d, "v1.2.3")
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
	return &service{Client: NewClient(path), path: path, door: d, monitor: m, server: s, stop: stop}
}

// folder is a temporary one with a short name: a socket's address takes 107 bytes.
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

// do sends one request and gives the status, the header and the body of the answer.
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

// report holds what these tests look at of a report's JSON.
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
	if status != http.StatusCreated || begun.ID == "" || begun.Traceparent != someTrace || header.Get("Location") != "/v1/windows/"+begun.ID {
		t.Fatalf("%d %v %s", status, header, body)
	}
	w := s.door.windows[0]
	if w.Kind != window.Epoch || w.Name != "n" || w.Model != "m" || w.Epoch != 3 || !w.HasEpoch || w.Path != "/p" ||
		len(w.GPUs) != 1 || w.GPUs[0] != "GPU-1" || w.Attributes["a"] != "b" || w.Source != window.Announced || emit.Traceparent(s.door.parents[0]) != someTrace {
		t.Errorf("the door was given %+v, parent %v", w, s.door.parents[0])
	}
	if callers := os.Getpid(); w.PID != callers {
		t.Errorf("pid %d, want the caller's, %d", w.PID, callers)
	}

	type list struct{ Running, Ended []report }
	status, _, body = s.do(t, "GET", "/v1/windows", "")
	if got := parseAs[list](t, body); status != http.StatusOK || len(got.Running) != 1 || got.Running[0].ID != begun.ID || len(got.Ended) != 0 {
		t.Errorf("%d %s", status, body)
	}
	status, _, body = s.do(t, "GET", "/v1/windows/"+begun.ID, "")
	if got := parseAs[report](t, body); status != http.StatusOK || got.ID != begun.ID || got.Source != "announced" {
		t.Errorf("%d %s", status, body)
	}
	status, _, body = s.do(t, "POST", "/v1/windows/"+begun.ID+"/end", "")
	if got := parseAs[report](t, body); status != http.StatusOK || got.Kind != "epoch" || got.Epoch == nil || *got.Epoch != 3 || got.Duration <= 0 {
		t.Errorf("%d %s", status, body)
	}
	status, _, body = s.do(t, "GET", "/v1/windows", "")
	if got := parseAs[list](t, body); status != http.StatusOK || len(got.Running) != 0 || len(got.Ended) != 1 || got.Ended[0].ID != begun.ID {
		t.Errorf("%d %s", status, body)
	}
	if status, _, body = s.do(t, "GET", "/v1/windows/"+begun.ID, ""); status != http.StatusOK {
		t.Errorf("the report of an ended window: %d %s", status, body)
	}
	status, _, body = s.do(t, "POST", "/v1/windows/"+begun.ID+"/end", "{}")
	if got := parseAs[Error](t, body); status != http.StatusNotFound || !strings.Contains(got.Text, "has ended already: GET /v1/windows/"+begun.ID) {
		t.Errorf("ended twice: %d %s", status, body)
	}
}

func TestStatus(t *testing.T) {
	s := serve(t, nil)
	if _, err := s.Begin(t.Context(), Announcement{Kind: window.Custom, PID: 1}); err != nil {
		t.Fatal(err)
	}
	code, _, body := s.do(t, "GET", "/v1/status", "")
	got := parseAs[Status](t, body)
	if code != http.StatusOK || got.Version != "v1.2.3" || got.Interval != config.DefaultInterval.Seconds() || got.Uptime <= 0 || got.WindowsOpen != 1 || got.Problems == nil {
		t.Errorf("%d %s", code, body)
	}
	if s.door.windows[0].PID != 1 {
		t.Errorf("pid %d, want the one that was given", s.door.windows[0].PID)
	}
}

// TestStopLetsRequestsFinish has a request wait for the rest of its body while the server stops.
func TestStopLetsRequestsFinish(t *testing.T) {
	s := serve(t, nil)
	c := s.dial(t)
	body := `{"kind":"epoch"}`
	if _, err := io.WriteString(c, "POST /v1/windows HTTP/1.1\r\nHost: x\r\nContent-Length: 16\r\nExpect: 100-continue\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 4096)
	n, err := c.Read(buf) // the server asks for the body: the request is under way
	if err != nil || !strings.HasPrefix(string(buf[:n]), "HTTP/1.1 100 ") {
		t.Fatalf("%v %q", err, buf[:n])
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
		t.Errorf("%v %q", err, answer)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

// TestStopCutsOffWhoNeverFinishes leaves a request half sent.
func TestStopCutsOffWhoNeverFinishes(t *testing.T) {
	s := serve(t, func(s *Server) { s.http.ReadTimeout, s.http.ReadHeaderTimeout = time.Hour, time.Hour })
	c := s.dial(t)
	if _, err := io.WriteString(c, "POST /v1/windows HTTP/1.1\r\nHost: x\r\nContent-Length: 16\r\nExpect: 100-continue\r\n\r\n"); err != nil {
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

func TestServeTellsOfABrokenListener(t *testing.T) {
	s := serve(t, nil)
	l, err := Listen(filepath.Join(folder(t), "s"))
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	err = NewServer(s.monitor, s.door, "").Serve(t.Context(), l)
	if err == nil || !strings.Contains(err.Error(), "no longer answers on") {
		t.Errorf("%v", err)
	}
}
