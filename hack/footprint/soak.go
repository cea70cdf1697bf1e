package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
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
	settled    = 2 * time.Minute // the time after which memory should not grow
	lookEvery  = 20 * time.Second
	batchSize  = 512
	batchEvery = 100 * time.Millisecond
	matchEvery = 8 // one span in so many of a batch is a window
)

// soak sends 5,000 spans a second to a Collector and announces 10,000 windows a minute, with 1,000 open at any moment.
// It prints the Collector's memory and goroutines.
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
	senders.Go(func() { failed[1] = churn(context.Background(), client, os.Getpid(), 1000, length) })
	err = watch(ctx, c.process)
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
		if _, err := to.Export(ctx, batch()); err != nil && ctx.Err() == nil {
			return err
		}
	}
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

// watch prints the process's memory, and at the end its growth since the start-up time.
func watch(ctx context.Context, p process) error {
	began := time.Now()
	var first, last holding
	fmt.Printf("%8s %14s %14s %12s %12s\n", "after", "resident", "heap", "goroutines", "of one core")
	for {
		before, err := p.onCPU()
		if err != nil {
			return err
		}
		since := time.Now()
		select {
		case <-ctx.Done():
			fmt.Printf("since %v: resident %+.1f MB, heap %+.1f MB, goroutines %+d\n", settled,
				float64(last.resident-first.resident)/1e6, float64(last.heap-first.heap)/1e6, last.goroutines-first.goroutines)
			return nil
		case <-time.After(lookEvery):
		}
		after, err := p.onCPU()
		if err != nil {
			return err
		}
		if last, err = p.holds(); err != nil {
			return err
		}
		took := time.Since(began).Round(time.Second)
		if took <= settled {
			first = last
		}
		fmt.Printf("%8v %11.1f MB %11.1f MB %12d %10.2f %%\n", took, float64(last.resident)/1e6, float64(last.heap)/1e6,
			last.goroutines, 100*(after-before).Seconds()/time.Since(since).Seconds())
	}
}

type holding struct {
	resident   int64 // bytes
	heap       int64 // bytes of objects in use after a collection
	goroutines int
}

func (p process) holds() (h holding, err error) {
	if h.resident, err = p.resident(); err != nil {
		return h, err
	}
	if h.goroutines, err = pprofNumber("goroutine?debug=1", "goroutine profile: total %d"); err != nil {
		return h, err
	}
	heap, err := pprofNumber("heap?debug=1&gc=1", "# HeapAlloc = %d")
	h.heap = int64(heap)
	return h, err
}

// pprofNumber returns a number on one of the pages of net/http/pprof.
func pprofNumber(page, line string) (n int, err error) {
	answer, err := http.Get("http://127.0.0.1:11777/debug/pprof/" + page)
	if err != nil {
		return 0, err
	}
	defer func() { _ = answer.Body.Close() }()
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		if got, _ := fmt.Sscanf(lines.Text(), line, &n); got == 1 {
			return n, nil
		}
	}
	return 0, fmt.Errorf("%s has no line %q", page, line)
}
