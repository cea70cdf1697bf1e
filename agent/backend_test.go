package agent

import (
	"context"
	"net"
	"sync"
	"testing"

	logservice "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	metricservice "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	traceservice "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	logpb "go.opentelemetry.io/proto/otlp/logs/v1"
	metricpb "go.opentelemetry.io/proto/otlp/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
)

// backend is an OTLP server on the loopback interface that keeps what it receives.
type backend struct {
	metricservice.UnimplementedMetricsServiceServer
	address string

	mu      sync.Mutex
	spans   []*tracepb.ResourceSpans
	metrics []*metricpb.ResourceMetrics
	logs    []*logpb.ResourceLogs
}

// traceReceiver is a type of its own because the method of each service is named Export.
type traceReceiver struct {
	traceservice.UnimplementedTraceServiceServer
	*backend
}

func (b *backend) Export(_ context.Context,
	r *metricservice.ExportMetricsServiceRequest) (*metricservice.ExportMetricsServiceResponse, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.metrics = append(b.metrics, r.ResourceMetrics...)
	return &metricservice.ExportMetricsServiceResponse{}, nil
}

func (r traceReceiver) Export(_ context.Context,
	q *traceservice.ExportTraceServiceRequest) (*traceservice.ExportTraceServiceResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spans = append(r.spans, q.ResourceSpans...)
	return &traceservice.ExportTraceServiceResponse{}, nil
}

// logReceiver is the service for log records.
type logReceiver struct {
	logservice.UnimplementedLogsServiceServer
	*backend
}

func (r logReceiver) Export(_ context.Context,
	q *logservice.ExportLogsServiceRequest) (*logservice.ExportLogsServiceResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.logs = append(r.logs, q.ResourceLogs...)
	return &logservice.ExportLogsServiceResponse{}, nil
}

// records returns the log records of one name received so far.
func (b *backend) records(name string) (found []*logpb.LogRecord) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.logs {
		for _, s := range r.ScopeLogs {
			for _, l := range s.LogRecords {
				if l.EventName == name {
					found = append(found, l)
				}
			}
		}
	}
	return found
}

// serveBackend runs a backend until the test ends.
func serveBackend(t *testing.T) *backend {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &backend{address: listener.Addr().String()}
	server := grpc.NewServer()
	metricservice.RegisterMetricsServiceServer(server, b)
	traceservice.RegisterTraceServiceServer(server, traceReceiver{backend: b})
	logservice.RegisterLogsServiceServer(server, logReceiver{backend: b})
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

// attributes converts a list to Go values by key.
func attributes(list []*commonpb.KeyValue) map[string]any {
	found := map[string]any{}
	for _, kv := range list {
		switch v := kv.Value.Value.(type) {
		case *commonpb.AnyValue_StringValue:
			found[kv.Key] = v.StringValue
		case *commonpb.AnyValue_IntValue:
			found[kv.Key] = v.IntValue
		case *commonpb.AnyValue_DoubleValue:
			found[kv.Key] = v.DoubleValue
		case *commonpb.AnyValue_BoolValue:
			found[kv.Key] = v.BoolValue
		default:
			found[kv.Key] = kv.Value
		}
	}
	return found
}
