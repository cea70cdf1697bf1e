package export

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	logservice "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	logpb "go.opentelemetry.io/proto/otlp/logs/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/emit/queue"
)

// logBackend is an OTLP server on the loopback that keeps log records.
type logBackend struct {
	logservice.UnimplementedLogsServiceServer
	address string

	mu   sync.Mutex
	logs []*logpb.ResourceLogs
}

func (b *logBackend) Export(
	_ context.Context, r *logservice.ExportLogsServiceRequest,
) (*logservice.ExportLogsServiceResponse, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.logs = append(b.logs, r.ResourceLogs...)
	return &logservice.ExportLogsServiceResponse{}, nil
}

func (b *logBackend) records() (all []*logpb.LogRecord) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.logs {
		for _, s := range r.ScopeLogs {
			all = append(all, s.LogRecords...)
		}
	}
	return all
}

// serve speaks gRPC until the test ends; without the service for log records where it takes none.
func (b *logBackend) serve(t *testing.T, takes bool) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	if takes {
		logservice.RegisterLogsServiceServer(server, b)
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	b.address = listener.Addr().String()
}

func openLogs(t *testing.T, address string) *Exporter {
	t.Helper()
	environment(t, map[string]string{"OTEL_EXPORTER_OTLP_LOGS_ENDPOINT": "http://" + address})
	e, err := New(t.Context(), Options{Version: "1.2.3", Logs: true})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestLogsArrive(t *testing.T) {
	var b logBackend
	b.serve(t, true)
	e := openLogs(t, b.address)
	if !e.Exports() {
		t.Error("nothing leaves")
	}
	at := time.Date(2026, 11, 3, 10, 0, 0, 0, time.UTC)
	event, err := emit.NewTestEvent("stallspan.gpu.lost", at)
	if err != nil {
		t.Fatal(err)
	}
	span := emit.RootContext()
	e.Log(event, span)
	stats := e.Close(within(t, patience))
	if stats != (Stats{Logs: queue.Counts{Sent: 1}}) || stats.Lost() != "" {
		t.Errorf("stats: got %+v, want 1 log record", stats)
	}
	all := b.records()
	if len(all) != 1 {
		t.Fatalf("log records: got %v, want one", all)
	}
	id := span.TraceID()
	if r := all[0]; r.EventName != event.Name || r.SeverityText != "ERROR" ||
		r.SeverityNumber != logpb.SeverityNumber_SEVERITY_NUMBER_ERROR ||
		string(r.TraceId) != string(id[:]) || r.Body.GetStringValue() != event.Body ||
		r.TimeUnixNano != uint64(at.UnixNano()) ||
		len(r.Attributes) != len(event.Attributes) {
		t.Errorf("log record: got %v, want %+v in span %v", r, event, span)
	}
}

// Over HTTP too, an answer sorts what may be sent again from what may not.
func TestLogsOverHTTP(t *testing.T) {
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var sent logservice.ExportLogsServiceRequest
		if err != nil || proto.Unmarshal(body, &sent) != nil || r.URL.Path != "/v1/logs" || len(sent.ResourceLogs) != 1 {
			t.Errorf("request: got %s, %v, %v, want one resource at /v1/logs", r.URL.Path, err, &sent)
		}
		if requests.Add(1) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	environment(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": server.URL,
		"OTEL_EXPORTER_OTLP_PROTOCOL": protocolHTTP,
		"OTEL_TRACES_EXPORTER":        "none", "OTEL_METRICS_EXPORTER": "none"})
	e, err := New(t.Context(), Options{Logs: true})
	if err != nil {
		t.Fatal(err)
	}
	event, _ := emit.NewTestEvent("stallspan.gpu.lost", time.Now())
	e.Log(event, emit.RootContext())
	if stats := e.Close(within(t, patience)); stats.Logs.Sent != 1 || stats.Lost() != "" || requests.Load() != 2 {
		t.Errorf("%+v after %d requests", stats, requests.Load())
	}
}

// A redirect would send a batch and its keys to another host: it is refused, and the reason shows no password.
func TestRedirect(t *testing.T) {
	var others atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { others.Add(1) }))
	defer other.Close()
	to := strings.Replace(other.URL, "http://", "http://user:SECRET@", 1)
	server := httptest.NewServer(http.RedirectHandler(to, http.StatusTemporaryRedirect))
	defer server.Close()
	environment(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": server.URL,
		"OTEL_EXPORTER_OTLP_PROTOCOL": protocolHTTP, "OTEL_EXPORTER_OTLP_HEADERS": "X-Api-Key=KEY",
		"OTEL_TRACES_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "none"})
	e, err := New(t.Context(), Options{Logs: true})
	if err != nil {
		t.Fatal(err)
	}
	event, _ := emit.NewTestEvent("stallspan.gpu.lost", time.Now())
	e.Log(event, emit.RootContext())
	stats := e.Close(within(t, patience))
	if lost := stats.Lost(); stats.Logs.Refused != 1 || !strings.Contains(lost, "307 Temporary Redirect to http://xxxxx@") ||
		strings.Contains(lost, "SECRET") {
		t.Errorf("got %+v, %s; want one refused log record and where the redirect leads", stats, lost)
	}
	if n := others.Load(); n != 0 {
		t.Errorf("got %d requests at the other host, want none", n)
	}
}

// A backend that takes no log records refuses them: they are counted, and not sent again.
func TestLogsRefused(t *testing.T) {
	var b logBackend
	b.serve(t, false)
	e := openLogs(t, b.address)
	event, _ := emit.NewTestEvent("stallspan.gpu.lost", time.Now())
	e.Log(event, emit.RootContext())
	if err := e.Flush(within(t, patience)); err != nil {
		t.Fatal(err)
	}
	if err := e.Failing(); err != nil {
		t.Errorf("failing: %v", err)
	}
	stats := e.Close(within(t, patience))
	if lost := stats.Lost(); stats.Logs.Refused != 1 || !strings.Contains(lost,
		"1 of 1 log records (refused); set OTEL_LOGS_EXPORTER=none") {
		t.Errorf("got stats %+v and the line %q, want one refused record and OTEL_LOGS_EXPORTER=none", stats, lost)
	}
}

// A burst while the backend is away takes no more memory than the queue may, and what does not fit is counted.
func TestLogBurst(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	e := openLogs(t, listener.Addr().String())
	const burst = 10000
	for i := range burst {
		event, _ := emit.NewTestEvent("stallspan.gpu.temperature.high", time.Now())
		event.Body = fmt.Sprint(i)
		e.Log(event, emit.RootContext())
		if e.records.queue.Bytes() > maxRecordBytes { // only this goroutine adds
			t.Fatalf("%d bytes wait", e.records.queue.Bytes())
		}
	}
	c := e.records.queue.Counts()
	if c.Dropped == 0 || c.Dropped+c.Waiting != burst || e.LogsDropped() != c.Dropped {
		t.Errorf("counts: got %+v, want all %d dropped or waiting", c, burst)
	}
	t.Logf("%d records wait, in %d bytes", c.Waiting, e.records.queue.Bytes())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if stats := e.Close(ctx); stats.Logs.Dropped+stats.Logs.Waiting != burst ||
		!strings.Contains(stats.Lost(), "10000 of 10000 log records") {
		t.Errorf("got stats %+v and the line %q, want all %d lost", stats, stats.Lost(), burst)
	}
}

// Log records leave only where they are wanted, and where the environment lets them.
func TestLogsOff(t *testing.T) {
	environment(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_LOGS_EXPORTER": "none",
		"OTEL_TRACES_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "none"})
	for _, wanted := range []bool{false, true} {
		e, err := New(t.Context(), Options{Logs: wanted})
		if err != nil {
			t.Fatal(err)
		}
		e.Log(emit.Event{Name: "x"}, emit.RootContext())
		if e.Exports() || e.LogsDropped() != 0 {
			t.Error("something leaves")
		}
		e.Close(within(t, patience))
	}
}
