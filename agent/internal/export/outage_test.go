package export

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace"
	traceservice "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stallspan/stallspan/internal/emit"
)

// send ends n spans.
func send(e *Exporter, n int) {
	for i := range n {
		e.Begin("epoch", time.Now(), trace.SpanContext{}).End(emit.Span{Name: fmt.Sprint("epoch ", i), End: time.Now()})
	}
}

// freeAddress returns an address on which no process listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

func TestBackendComesLate(t *testing.T) {
	for _, protocol := range []string{protocolGRPC, protocolHTTP} {
		t.Run(protocol, func(t *testing.T) {
			address := freeAddress(t)
			environment(t, map[string]string{
				"OTEL_EXPORTER_OTLP_ENDPOINT": "http://" + address,
				"OTEL_EXPORTER_OTLP_PROTOCOL": protocol,
			})
			e, err := New(t.Context(), Options{Collect: func() metricdata.ScopeMetrics { return someMetrics("", time.Now()) }})
			if err != nil {
				t.Fatal(err)
			}
			send(e, 600)
			untilSpansFail(t, e, "connection refused")
			var b backend
			if protocol == protocolGRPC {
				b.serve(t, address, nil)
			} else {
				listener, err := net.Listen("tcp", address)
				if err != nil {
					t.Fatal(err)
				}
				server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: b.handler(t, 0, "")}}
				server.Start()
				t.Cleanup(server.Close)
			}
			send(e, 600)
			stats := e.Close(within(t, patience))
			if stats.Lost() != "" || stats.Spans.Sent != 1200 {
				t.Errorf("stats: got %+v (%s), want 1200 spans and nothing lost", stats, stats.Lost())
			}
			checkOrder(t, &b)
		})
	}
}

// untilSpansFail returns when the queue has met an error that says why.
func untilSpansFail(t *testing.T, e *Exporter, why string) {
	t.Helper()
	for ctx := within(t, patience); !strings.Contains(fmt.Sprint(e.stats().Spans.LastError), why); {
		if ctx.Err() != nil {
			t.Fatalf("spans met no error of %q: %v", why, e.stats().Spans.LastError)
		}
		short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		if err := e.Flush(short); err == nil {
			t.Fatal("Flush without a backend: got no error, want one")
		}
		cancel()
	}
}

// checkOrder finds each of 600 spans twice, the earlier one first.
func checkOrder(t *testing.T, b *backend) {
	t.Helper()
	i := 0
	for _, r := range b.spans {
		for _, scope := range r.ScopeSpans {
			for _, s := range scope.Spans {
				if want := fmt.Sprint("epoch ", i%600); s.Name != want {
					t.Fatalf("span %d is %s", i, s.Name)
				}
				i++
			}
		}
	}
}

func TestSlowBackend(t *testing.T) {
	release := make(chan struct{})
	b := backend{answerSpans: func(ctx context.Context, _ int) (*traceservice.ExportTraceServiceResponse, error) {
		select {
		case <-release:
		case <-ctx.Done():
		}
		return nil, status.Error(codes.Unavailable, "too slow")
	}}
	b.serve(t, "", nil)
	environment(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://" + b.address})
	e, err := New(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	send(e, 3)
	stats := e.Close(within(t, 200*time.Millisecond)) // returns, though the backend has not answered
	close(release)
	if stats.Spans.Waiting != 3 || stats.Spans.Sent != 0 {
		t.Errorf("stats: got %+v, want 3 unsent spans", stats)
	}
	lost := stats.Lost()
	want := "lost on the way to the OTLP backend: 3 of 3 spans (unsent at the end); " +
		"check that it answers at OTEL_EXPORTER_OTLP_ENDPOINT: "
	if !strings.HasPrefix(lost, want) || strings.Contains(lost, "\n") {
		t.Errorf("lost: got %q, want %q and a reason in one line", lost, want)
	}
}

func TestRefusal(t *testing.T) {
	b := backend{answerSpans: func(_ context.Context, n int) (*traceservice.ExportTraceServiceResponse, error) {
		switch n {
		case 1:
			return nil, status.Error(codes.InvalidArgument, "poisoned")
		case 2:
			return &traceservice.ExportTraceServiceResponse{PartialSuccess: &traceservice.ExportTracePartialSuccess{
				RejectedSpans: 2, ErrorMessage: "two too many"}}, nil
		}
		return &traceservice.ExportTraceServiceResponse{}, nil
	}}
	b.serve(t, "", nil)
	environment(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://" + b.address})
	e, err := New(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{5, 7, 1} {
		send(e, n)
		if err := e.Flush(within(t, patience)); err != nil {
			t.Fatal(err)
		}
	}
	stats := e.Close(within(t, patience))
	if stats.Spans.Refused != 7 || stats.Spans.Sent != 6 || b.requests != 3 {
		t.Errorf("%+v after %d requests", stats, b.requests)
	}
	want := "lost on the way to the OTLP backend: 7 of 13 spans (refused): " +
		"traces export: OTLP partial success: two too many (2 spans rejected)"
	if got := stats.Lost(); got != want {
		t.Errorf("lost: %q", got)
	}
}

func TestRefusalOverHTTP(t *testing.T) {
	for _, test := range []struct {
		status            int
		body              string
		refused, exported uint64
		says              string
	}{
		{status: 400, body: "bad\nspan", refused: 4, says: "400 Bad Request: bad span"},
		{status: 401, refused: 4, says: "401 Unauthorized"},
		{status: 500, body: strings.Repeat("x", 100_000), refused: 4, says: "500 Internal Server Error: xxx"},
		{status: 200, body: "\xff\xff", exported: 4}, // taken, in words that cannot be read
		{status: 200, body: "\n\x02\b\x03", refused: 3, exported: 1, says: "(3 spans rejected)"},
	} {
		t.Run(fmt.Sprint(test.status, " ", test.refused), func(t *testing.T) {
			var b backend
			b.serveHTTP(t, test.status, test.body)
			environment(t, map[string]string{
				"OTEL_EXPORTER_OTLP_ENDPOINT": "http://" + b.address, "OTEL_EXPORTER_OTLP_PROTOCOL": protocolHTTP})
			e, err := New(t.Context(), Options{})
			if err != nil {
				t.Fatal(err)
			}
			send(e, 4)
			stats := e.Close(within(t, patience))
			if stats.Spans.Refused != test.refused || stats.Spans.Sent != test.exported ||
				!strings.Contains(stats.Lost(), test.says) {
				t.Errorf("got stats %+v and the line %q, want %d refused, %d exported and %q",
					stats, stats.Lost(), test.refused, test.exported, test.says)
			}
			if len(stats.Lost()) > 500 {
				t.Errorf("%d bytes of error", len(stats.Lost()))
			}
		})
	}
}

func TestTLS(t *testing.T) {
	certificate, path := selfSigned(t)
	for _, test := range []struct {
		protocol string
		trusted  bool
	}{{protocolGRPC, true}, {protocolGRPC, false}, {protocolHTTP, true}, {protocolHTTP, false}} {
		t.Run(fmt.Sprint(test.protocol, test.trusted), func(t *testing.T) {
			var b backend
			if test.protocol == protocolGRPC {
				b.serve(t, "", &certificate)
			} else {
				server := httptest.NewUnstartedServer(b.handler(t, 0, ""))
				server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
				server.Config.ErrorLog = log.New(io.Discard, "", 0)
				server.EnableHTTP2 = true
				server.StartTLS()
				t.Cleanup(server.Close)
				b.address = server.Listener.Addr().String()
			}
			set := map[string]string{
				"OTEL_EXPORTER_OTLP_ENDPOINT": "https://" + b.address, "OTEL_EXPORTER_OTLP_PROTOCOL": test.protocol}
			if test.trusted {
				set["OTEL_EXPORTER_OTLP_CERTIFICATE"] = path
			}
			environment(t, set)
			e, err := New(t.Context(), Options{Collect: func() metricdata.ScopeMetrics { return someMetrics("", time.Now()) }})
			if err != nil {
				t.Fatal(err)
			}
			send(e, 1)
			if !test.trusted {
				untilSpansFail(t, e, "certificate")
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				if stats := e.Close(ctx); stats.Spans.Waiting != 1 {
					t.Errorf("stats: got %+v, want 1 unsent span", stats)
				}
				return
			}
			if lost := e.Close(within(t, patience)).Lost(); lost != "" || len(b.metrics) == 0 || len(b.spans) == 0 {
				t.Errorf("lost: %q", lost)
			}
		})
	}
}

// selfSigned makes a certificate for the loopback, and its file.
func selfSigned(t *testing.T) (tls.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "backend"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, path
}

// childVariable makes a copy of this test run one of the child programs of TestMain.
const childVariable = "STALLSPAN_TEST_CHILD"

// Neither the SDK nor gRPC may print anything between the lines of a training program.
func TestQuiet(t *testing.T) {
	for _, protocol := range []string{protocolGRPC, protocolHTTP} {
		cmd := exec.Command(os.Args[0])
		cmd.Env = []string{
			childVariable + "=quiet", "OTEL_EXPORTER_OTLP_ENDPOINT=http://" + freeAddress(t),
			"OTEL_EXPORTER_OTLP_PROTOCOL=" + protocol,
			"OTEL_METRIC_EXPORT_INTERVAL=100", "OTEL_EXPORTER_OTLP_TIMEOUT=200",
			"GOCOVERDIR=" + t.TempDir(), // or a test with -cover speaks of it
		}
		out, err := cmd.CombinedOutput()
		if err != nil || len(out) > 0 {
			t.Errorf("%s: got error %v and output %s, want neither", protocol, err, out)
		}
	}
}

// runQuiet is the child of TestQuiet: an exporter in an outage.
func runQuiet() {
	e, err := New(context.Background(), Options{Collect: func() metricdata.ScopeMetrics {
		return someMetrics("", time.Now())
	}})
	if err != nil {
		panic(err)
	}
	send(e, 10)
	ctx, cancel := context.WithTimeout(context.Background(), 1500*time.Millisecond)
	defer cancel()
	if s := e.Close(ctx); s.Spans.Waiting != 10 || s.MetricError == nil {
		panic(fmt.Sprintf("%+v", s))
	}
}
