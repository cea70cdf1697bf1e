package main

import (
	"context"
	"net"
	"sync/atomic"

	metricservice "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	traceservice "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
)

// backend is an OTLP server that counts what it receives and keeps nothing.
type backend struct {
	metricservice.UnimplementedMetricsServiceServer
	address string
	stop    func()
	metrics atomic.Int64 // exports
	spans   atomic.Int64
}

type traces struct {
	traceservice.UnimplementedTraceServiceServer
	*backend
}

func serveBackend() (*backend, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	b := &backend{address: l.Addr().String()}
	server := grpc.NewServer()
	metricservice.RegisterMetricsServiceServer(server, b)
	traceservice.RegisterTraceServiceServer(server, traces{backend: b})
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	b.stop = func() {
		server.Stop()
		<-done
	}
	return b, nil
}

func (b *backend) Export(context.Context,
	*metricservice.ExportMetricsServiceRequest) (*metricservice.ExportMetricsServiceResponse, error) {
	b.metrics.Add(1)
	return &metricservice.ExportMetricsServiceResponse{}, nil
}

func (t traces) Export(_ context.Context,
	r *traceservice.ExportTraceServiceRequest) (*traceservice.ExportTraceServiceResponse, error) {
	for _, resource := range r.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			t.spans.Add(int64(len(scope.Spans)))
		}
	}
	return &traceservice.ExportTraceServiceResponse{}, nil
}
