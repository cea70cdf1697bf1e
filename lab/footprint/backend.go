package main

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	logservice "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	metricservice "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	traceservice "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// backend is an OTLP server that counts what it receives and keeps nothing.
type backend struct {
	metricservice.UnimplementedMetricsServiceServer
	address string
	mode    atomic.Int32
	serving *serving
	metrics atomic.Int64 // exports
	spans   atomic.Int64
	logs    atomic.Int64
}

// What a backend does with an export.
const (
	takes   int32 = iota
	refuses       // with a status that may be tried again
	hangs         // until the client has enough
	down          // nothing listens
)

type traces struct {
	traceservice.UnimplementedTraceServiceServer
	*backend
}

type logs struct {
	logservice.UnimplementedLogsServiceServer
	*backend
}

// serving is a backend's server while it listens.
type serving struct {
	server *grpc.Server
	done   chan error
}

func serveBackend() (*backend, error) {
	b := &backend{address: "127.0.0.1:0"}
	return b, b.start()
}

func (b *backend) start() error {
	l, err := net.Listen("tcp", b.address)
	if err != nil {
		return err
	}
	b.address = l.Addr().String()
	s := &serving{grpc.NewServer(), make(chan error, 1)}
	metricservice.RegisterMetricsServiceServer(s.server, b)
	traceservice.RegisterTraceServiceServer(s.server, traces{backend: b})
	logservice.RegisterLogsServiceServer(s.server, logs{backend: b})
	go func() { s.done <- s.server.Serve(l) }()
	b.serving = s
	return nil
}

func (b *backend) stop() {
	if b.serving != nil {
		b.serving.server.Stop()
		<-b.serving.done
		b.serving = nil
	}
}

// flap changes the mode, in turn, until ctx ends.
func (b *backend) flap(ctx context.Context, every time.Duration) {
	turns := [...]int32{takes, refuses, takes, hangs, takes, down}
	for i := 0; ; i++ {
		mode := turns[i%len(turns)]
		b.mode.Store(mode)
		if mode == down {
			b.stop()
		} else if b.serving == nil {
			_ = b.start() // another program may have the port for a while
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(every):
		}
	}
}

// admit returns why an export fails.
func (b *backend) admit(ctx context.Context) error {
	switch b.mode.Load() {
	case refuses:
		return status.Error(codes.Unavailable, "flapping")
	case hangs:
		<-ctx.Done()
		return status.FromContextError(ctx.Err()).Err()
	}
	return nil
}

func (b *backend) Export(ctx context.Context,
	_ *metricservice.ExportMetricsServiceRequest) (*metricservice.ExportMetricsServiceResponse, error) {
	if err := b.admit(ctx); err != nil {
		return nil, err
	}
	b.metrics.Add(1)
	return &metricservice.ExportMetricsServiceResponse{}, nil
}

func (t traces) Export(ctx context.Context,
	r *traceservice.ExportTraceServiceRequest) (*traceservice.ExportTraceServiceResponse, error) {
	if err := t.admit(ctx); err != nil {
		return nil, err
	}
	for _, resource := range r.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			t.spans.Add(int64(len(scope.Spans)))
		}
	}
	return &traceservice.ExportTraceServiceResponse{}, nil
}

func (l logs) Export(ctx context.Context,
	r *logservice.ExportLogsServiceRequest) (*logservice.ExportLogsServiceResponse, error) {
	if err := l.admit(ctx); err != nil {
		return nil, err
	}
	for _, resource := range r.ResourceLogs {
		for _, scope := range resource.ScopeLogs {
			l.logs.Add(int64(len(scope.LogRecords)))
		}
	}
	return &logservice.ExportLogsServiceResponse{}, nil
}
