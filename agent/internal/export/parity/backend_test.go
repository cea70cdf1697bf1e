package parity_test

import (
	"cmp"
	"context"
	"net"
	"os"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// backend is an OTLP server on the loopback that keeps what it is sent.
type backend struct {
	address string

	mu      sync.Mutex
	metrics pmetric.Metrics
	spans   ptrace.Traces
}

type metricServer struct {
	pmetricotlp.UnimplementedGRPCServer
	*backend
}

type traceServer struct {
	ptraceotlp.UnimplementedGRPCServer
	*backend
}

func (s metricServer) Export(_ context.Context, r pmetricotlp.ExportRequest) (pmetricotlp.ExportResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.Metrics().ResourceMetrics().MoveAndAppendTo(s.metrics.ResourceMetrics())
	return pmetricotlp.NewExportResponse(), nil
}

// Export puts all spans of one resource and scope together, as they may come in several batches.
func (s traceServer) Export(_ context.Context, r ptraceotlp.ExportRequest) (ptraceotlp.ExportResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	to := s.spans.ResourceSpans()
	if to.Len() == 0 {
		r.Traces().ResourceSpans().MoveAndAppendTo(to)
		return ptraceotlp.NewExportResponse(), nil
	}
	for _, resource := range r.Traces().ResourceSpans().All() {
		for _, scope := range resource.ScopeSpans().All() {
			scope.Spans().MoveAndAppendTo(to.At(0).ScopeSpans().At(0).Spans())
		}
	}
	return ptraceotlp.NewExportResponse(), nil
}

// takeMetrics gives what came since it was called last.
func (b *backend) takeMetrics() pmetric.Metrics {
	b.mu.Lock()
	defer b.mu.Unlock()
	taken := b.metrics
	b.metrics = pmetric.NewMetrics()
	return taken
}

// takeSpans gives what came since it was called last.
func (b *backend) takeSpans() ptrace.Traces {
	b.mu.Lock()
	defer b.mu.Unlock()
	taken := b.spans
	b.spans = ptrace.NewTraces()
	return taken
}

// serve speaks gRPC until the test ends.
func serve(t *testing.T) *backend {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &backend{address: listener.Addr().String(), metrics: pmetric.NewMetrics(), spans: ptrace.NewTraces()}
	server := grpc.NewServer()
	pmetricotlp.RegisterGRPCServer(server, &metricServer{backend: b})
	ptraceotlp.RegisterGRPCServer(server, &traceServer{backend: b})
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return b
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

// numbered sorts spans by depth and start, and makes span ids that came by chance 1, 2 and so on.
func numbered(all ptrace.Traces) {
	spans := all.ResourceSpans().At(0).ScopeSpans().At(0).Spans()
	parents := map[pcommon.SpanID]pcommon.SpanID{}
	for _, s := range spans.All() {
		parents[s.SpanID()] = s.ParentSpanID()
	}
	depth := func(s ptrace.Span) (n int) {
		for id, known := parents[s.SpanID()]; known; id, known = parents[id] {
			n++
		}
		return n
	}
	spans.Sort(func(a, b ptrace.Span) bool {
		return cmp.Or(
			cmp.Compare(depth(a), depth(b)),
			cmp.Compare(a.StartTimestamp(), b.StartTimestamp()),
			cmp.Compare(a.Name(), b.Name()),
		) < 0
	})
	numbers := map[pcommon.SpanID]pcommon.SpanID{}
	for i, s := range spans.All() {
		numbers[s.SpanID()] = pcommon.SpanID{7: byte(i + 1)}
	}
	for _, s := range spans.All() {
		s.SetSpanID(numbers[s.SpanID()])
		if number, known := numbers[s.ParentSpanID()]; known {
			s.SetParentSpanID(number)
		}
	}
}
