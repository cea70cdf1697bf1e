package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	traceservice "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// soaked is the configuration of a Collector with our receiver and processor. Its ports must be free.
const soaked = `
receivers:
  otlp: {protocols: {grpc: {endpoint: "127.0.0.1:14317"}}}
  stallspan: {socket: %q}
processors:
  stallspan:
  batch:
exporters:
  nop:
extensions:
  pprof: {endpoint: "127.0.0.1:11777"}
service:
  extensions: [pprof]
  telemetry: {metrics: {level: none}, logs: {level: error}}
  pipelines:
    traces: {receivers: [otlp, stallspan], processors: [stallspan, batch], exporters: [nop]}
    metrics: {receivers: [stallspan], exporters: [nop]}
    logs: {receivers: [stallspan], exporters: [nop]}
`

const (
	batchSize  = 512
	batchEvery = 100 * time.Millisecond
	matchEvery = 8 // one span in so many of a batch is a window
)

// soak sends 5,000 spans a second to a Collector and announces 10,000 windows a minute, with 1,000 open at any moment.
// It prints what the Collector holds, and fails if that grows.
func soak(binary string, length time.Duration) (err error) {
	dir, err := os.MkdirTemp("", "footprint")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	socket := filepath.Join(dir, "s.sock")
	c := &rival{}
	if err := c.start(binary, filepath.Join(dir, "soak.yaml"), fmt.Sprintf(soaked, socket)); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.end()) }()
	client, err := reach(socket)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), length)
	defer cancel()
	var senders sync.WaitGroup
	failed := make([]error, 2)
	senders.Go(func() { failed[0] = sendSpans(ctx) })
	senders.Go(func() { failed[1] = churn(ctx, client, os.Getpid(), 10_000, 1000, length) })
	err = subject{process: c.process, client: client, pprof: "127.0.0.1:11777", collect: true}.watch(ctx, length)
	cancel()
	senders.Wait()
	return errors.Join(append(failed, err)...)
}

// sendSpans sends batches over OTLP; the processor annotates some of their spans.
func sendSpans(ctx context.Context) error {
	conn, err := grpc.NewClient("127.0.0.1:14317", grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	to := traceservice.NewTraceServiceClient(conn)
	ticker := time.NewTicker(batchEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if err := export(context.WithoutCancel(ctx), to); err != nil { // a call under way at the end succeeds
			return err
		}
	}
}

func export(ctx context.Context, to traceservice.TraceServiceClient) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	_, err := to.Export(ctx, batch())
	return err
}

func batch() *traceservice.ExportTraceServiceRequest {
	spans := make([]*tracepb.Span, batchSize)
	now := uint64(time.Now().UnixNano())
	for i := range spans {
		s := &tracepb.Span{TraceId: make([]byte, 16), SpanId: make([]byte, 8), Name: fmt.Sprint("request ", i),
			StartTimeUnixNano: now - uint64(i+1)*1e7, EndTimeUnixNano: now}
		_, _ = rand.Read(s.TraceId)
		_, _ = rand.Read(s.SpanId)
		if i%matchEvery == 0 {
			s.Attributes = []*commonpb.KeyValue{text("stallspan.window.kind", "epoch"),
				text("stallspan.training.run.name", "soak")}
		}
		spans[i] = s
	}
	return &traceservice.ExportTraceServiceRequest{ResourceSpans: []*tracepb.ResourceSpans{{
		Resource: &resourcepb.Resource{Attributes: []*commonpb.KeyValue{text("service.name", "soak"),
			text("process.pid", strconv.Itoa(os.Getpid()))}},
		ScopeSpans: []*tracepb.ScopeSpans{{Spans: spans}},
	}}}
}

func text(key, value string) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: key,
		Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: value}}}
}
