package cluster

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"
	_ "google.golang.org/grpc/encoding/gzip" // Collectors compress
)

// span is a span with the attributes of its resource.
type span struct {
	name     string
	resource map[string]any
	attrs    map[string]any
}

// series is a metric of a resource.
type series struct {
	name     string
	resource map[string]any
}

// backend keeps what the cluster sends.
type backend struct {
	mu      sync.Mutex
	spans   []span
	metrics []series
}

// serve starts a backend at an address until the test ends.
func serve(t *testing.T, address string) *backend {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	b, server := &backend{}, grpc.NewServer()
	ptraceotlp.RegisterGRPCServer(server, &traces{b: b})
	pmetricotlp.RegisterGRPCServer(server, &metrics{b: b})
	plogotlp.RegisterGRPCServer(server, &logs{})
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	t.Cleanup(func() {
		server.Stop()
		serving.Wait()
	})
	return b
}

// found returns the spans that want accepts.
func (b *backend) found(want func(span) bool) (all []span) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.spans {
		if want(s) {
			all = append(all, s)
		}
	}
	return all
}

// has reports whether a metric has arrived whose name begins with prefix, from a resource with all of want.
func (b *backend) has(prefix string, want map[string]any) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range b.metrics {
		if !strings.HasPrefix(m.name, prefix) {
			continue
		}
		matches := true
		for key, value := range want {
			matches = matches && m.resource[key] == value
		}
		if matches {
			return true
		}
	}
	return false
}

type traces struct {
	ptraceotlp.UnimplementedGRPCServer
	b *backend
}

func (t *traces) Export(_ context.Context, r ptraceotlp.ExportRequest) (ptraceotlp.ExportResponse, error) {
	t.b.mu.Lock()
	defer t.b.mu.Unlock()
	for _, resource := range r.Traces().ResourceSpans().All() {
		for _, scope := range resource.ScopeSpans().All() {
			for _, s := range scope.Spans().All() {
				t.b.spans = append(t.b.spans, span{name: s.Name(), resource: raw(resource.Resource()),
					attrs: s.Attributes().AsRaw()})
			}
		}
	}
	return ptraceotlp.NewExportResponse(), nil
}

type metrics struct {
	pmetricotlp.UnimplementedGRPCServer
	b *backend
}

func (m *metrics) Export(_ context.Context, r pmetricotlp.ExportRequest) (pmetricotlp.ExportResponse, error) {
	m.b.mu.Lock()
	defer m.b.mu.Unlock()
	for _, resource := range r.Metrics().ResourceMetrics().All() {
		for _, scope := range resource.ScopeMetrics().All() {
			for _, metric := range scope.Metrics().All() {
				m.b.metrics = append(m.b.metrics, series{name: metric.Name(), resource: raw(resource.Resource())})
			}
		}
	}
	return pmetricotlp.NewExportResponse(), nil
}

type logs struct {
	plogotlp.UnimplementedGRPCServer
}

func (*logs) Export(context.Context, plogotlp.ExportRequest) (plogotlp.ExportResponse, error) {
	return plogotlp.NewExportResponse(), nil
}

func raw(r pcommon.Resource) map[string]any { return r.Attributes().AsRaw() }
