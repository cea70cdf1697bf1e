package export

import (
	"compress/gzip"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	_ "google.golang.org/grpc/encoding/gzip" // the server's side of compression
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	metricservice "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	traceservice "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	metricpb "go.opentelemetry.io/proto/otlp/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) == "quiet" {
		runQuiet()
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// backend is an OTLP server on the loopback that keeps what it is sent.
type backend struct {
	address string

	mu      sync.Mutex
	spans   []*tracepb.ResourceSpans
	metrics []*metricpb.ResourceMetrics
	headers map[string]string // of the last request

	// answerSpans, where set before the first request, may refuse a request of spans, or take its time. n counts the
	// requests from 1.
	answerSpans func(ctx context.Context, n int) (*traceservice.ExportTraceServiceResponse, error)
	requests    int
}

type traceServer struct {
	traceservice.UnimplementedTraceServiceServer
	*backend
}

type metricServer struct {
	metricservice.UnimplementedMetricsServiceServer
	*backend
}

func (s traceServer) Export(
	ctx context.Context, r *traceservice.ExportTraceServiceRequest,
) (*traceservice.ExportTraceServiceResponse, error) {
	s.noteMetadata(ctx)
	return s.takeSpans(ctx, r)
}

func (s metricServer) Export(
	ctx context.Context, r *metricservice.ExportMetricsServiceRequest,
) (*metricservice.ExportMetricsServiceResponse, error) {
	s.noteMetadata(ctx)
	return s.takeMetrics(r), nil
}

func (b *backend) noteMetadata(ctx context.Context) {
	in, _ := metadata.FromIncomingContext(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.headers = map[string]string{}
	for k, v := range in {
		b.headers[k] = strings.Join(v, ",")
	}
}

func (b *backend) takeSpans(
	ctx context.Context, r *traceservice.ExportTraceServiceRequest,
) (*traceservice.ExportTraceServiceResponse, error) {
	b.mu.Lock()
	b.requests++
	n := b.requests
	b.mu.Unlock()
	answer := &traceservice.ExportTraceServiceResponse{}
	if b.answerSpans != nil {
		var err error
		if answer, err = b.answerSpans(ctx, n); err != nil {
			return nil, err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.spans = append(b.spans, r.ResourceSpans...)
	return answer, nil
}

func (b *backend) takeMetrics(
	r *metricservice.ExportMetricsServiceRequest,
) *metricservice.ExportMetricsServiceResponse {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.metrics = append(b.metrics, r.ResourceMetrics...)
	return &metricservice.ExportMetricsServiceResponse{}
}

// serve speaks gRPC at an address, "" for any, until the test ends.
func (b *backend) serve(t *testing.T, address string, certificate *tls.Certificate) {
	t.Helper()
	if address == "" {
		address = "127.0.0.1:0"
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	var options []grpc.ServerOption
	if certificate != nil {
		options = append(options, grpc.Creds(credentials.NewServerTLSFromCert(certificate)))
	}
	server := grpc.NewServer(options...)
	traceservice.RegisterTraceServiceServer(server, traceServer{backend: b})
	metricservice.RegisterMetricsServiceServer(server, metricServer{backend: b})
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

// serveHTTP speaks OTLP/HTTP until the test ends. status, where not 0, is its answer to spans, with a body.
func (b *backend) serveHTTP(t *testing.T, status int, body string) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(b.handler(t, status, body))
	t.Cleanup(server.Close)
	b.address = server.Listener.Addr().String()
	return server
}

func (b *backend) handler(t *testing.T, status int, body string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.mu.Lock()
		b.headers = map[string]string{}
		for k := range r.Header {
			b.headers[strings.ToLower(k)] = r.Header.Get(k)
		}
		b.mu.Unlock()
		var in io.Reader = r.Body
		if r.Header.Get("Content-Encoding") == "gzip" {
			var err error
			if in, err = gzip.NewReader(r.Body); err != nil {
				t.Error(err)
				return
			}
		}
		data, err := io.ReadAll(in)
		if err != nil {
			return // the client left
		}
		var answer proto.Message
		switch r.URL.Path {
		case "/v1/traces":
			if status != 0 {
				w.Header().Set("Content-Type", "application/x-protobuf")
				w.WriteHeader(status)
				_, _ = io.WriteString(w, body)
				return
			}
			var request traceservice.ExportTraceServiceRequest
			if err := proto.Unmarshal(data, &request); err != nil {
				t.Error(err)
			}
			answer, _ = b.takeSpans(r.Context(), &request)
		case "/v1/metrics":
			var request metricservice.ExportMetricsServiceRequest
			if err := proto.Unmarshal(data, &request); err != nil {
				t.Error(err)
			}
			answer = b.takeMetrics(&request)
		default:
			http.NotFound(w, r)
			return
		}
		text, err := proto.Marshal(answer)
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
		_, _ = w.Write(text)
	})
}

// all gives every span that arrived, by name.
func (b *backend) all() map[string][]*tracepb.Span {
	b.mu.Lock()
	defer b.mu.Unlock()
	found := map[string][]*tracepb.Span{}
	for _, r := range b.spans {
		for _, s := range r.ScopeSpans {
			for _, span := range s.Spans {
				found[span.Name] = append(found[span.Name], span)
			}
		}
	}
	return found
}

// environment makes these the only OTEL_ variables that are set.
func environment(t *testing.T, set map[string]string) {
	t.Helper()
	for _, pair := range os.Environ() {
		if name, _, _ := strings.Cut(pair, "="); strings.HasPrefix(name, "OTEL_") {
			t.Setenv(name, "")
		}
	}
	for name, value := range set {
		t.Setenv(name, value)
	}
}
