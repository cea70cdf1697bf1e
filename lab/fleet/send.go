package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/stats"
)

// giveUp is how long an agent tries to send a request, as the SDK's exporters do.
const giveUp = time.Minute

// way is a gateway as agents see it.
type way struct {
	connection *grpc.ClientConn
	metrics    pmetricotlp.GRPCClient
	traces     ptraceotlp.GRPCClient
}

// wire counts the bytes of requests.
type wire struct{ plain, compressed, requests atomic.Int64 }

// TagRPC implements stats.Handler.
func (w *wire) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC implements stats.Handler.
func (w *wire) HandleRPC(_ context.Context, s stats.RPCStats) {
	if out, ok := s.(*stats.OutPayload); ok {
		w.plain.Add(int64(out.Length))
		w.compressed.Add(int64(out.WireLength))
		w.requests.Add(1)
	}
}

// TagConn implements stats.Handler.
func (w *wire) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn implements stats.Handler.
func (w *wire) HandleConn(context.Context, stats.ConnStats) {}

func (w *wire) open(address string) (*way, error) {
	c, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithStatsHandler(w), grpc.WithDefaultCallOptions(grpc.UseCompressor(gzip.Name)))
	if err != nil {
		return nil, err
	}
	return &way{c, pmetricotlp.NewGRPCClient(c), ptraceotlp.NewGRPCClient(c)}, nil
}

// deliver sends to one gateway after the other, until one has it. It reports whether that was so, and whether there was
// an earlier try, which may have been stored, too.
func deliver(ctx context.Context, ways []*way, first int, send func(context.Context, *way) error) (ok, twice bool) {
	for end, i := time.Now().Add(giveUp), first; time.Now().Before(end) && ctx.Err() == nil; i++ {
		try, cancel := context.WithTimeout(ctx, 10*time.Second)
		err := send(try, ways[i%len(ways)])
		cancel()
		if err == nil {
			return true, twice
		}
		twice = true
		time.Sleep(200 * time.Millisecond)
	}
	return false, twice
}

// sink is the backend of traces. It keeps which windows arrived.
type sink struct {
	ptraceotlp.UnimplementedGRPCServer

	mu    sync.Mutex
	spans int
	roots map[trace.SpanID]bool
}

// Export implements ptraceotlp.GRPCServer.
func (s *sink) Export(_ context.Context, r ptraceotlp.ExportRequest) (ptraceotlp.ExportResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, resource := range r.Traces().ResourceSpans().All() {
		for _, scope := range resource.ScopeSpans().All() {
			for _, span := range scope.Spans().All() {
				s.spans++
				if span.ParentSpanID().IsEmpty() {
					s.roots[trace.SpanID(span.SpanID())] = true
				}
			}
		}
	}
	return ptraceotlp.NewExportResponse(), nil
}

func (s *sink) count(of []trace.SpanID) (arrived, roots int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range of {
		if s.roots[id] {
			arrived++
		}
	}
	return arrived, len(s.roots)
}
