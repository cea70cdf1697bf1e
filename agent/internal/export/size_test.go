package export

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/internal/config"
	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/window"
)

// slowEpoch is what emit makes of an epoch that knows everything: two GPUs, a disk, pressure, three stalls.
func slowEpoch() emit.Span {
	r := &window.Report{
		Window: window.Window{Kind: window.Epoch, Run: "train_resnet50.py", Epoch: 41, HasEpoch: true,
			Source: window.Announced,
			Path:   "/data/imagenet"},
		Facts:     window.Facts{GPUIDs: []string{"GPU-8f6b3a52-9d0e-4a7c-8b1f-2f1f6b0c1d2e", "GPU-1c2d3e4f-5a6b-4c7d-9e8f-0a1b2c3d4e5f"}, Disks: []window.DiskUse{{Name: "nvme0n1", ReadBytes: 1 << 30, ReadOperations: 1 << 18, ReadTime: time.Minute}}, Pressure: &window.Pressure{Some: 30 * time.Second, Full: 20 * time.Second}},
		Ledger:    window.Ledger{Split: true, Busy: 40 * time.Second, Storage: 60 * time.Second, CPU: 10 * time.Second, Other: 10 * time.Second},
		Judgement: window.Judgement{Verdict: window.StorageBound, Slow: true, SlowReason: "storage_stall", Speedup: 2, Uncertainty: 0.02},
	}
	r.Start.Wall = time.Date(2026, 11, 3, 10, 0, 0, 0, time.UTC)
	r.End.Mono = time.Minute
	r.StartEdge, r.EndEdge = &history.Edge{}, &history.Edge{}
	for i := range 3 {
		from := time.Duration(i) * 20 * time.Second
		r.Stalls = append(r.Stalls, window.Stall{Start: from, End: from + 10*time.Second})
	}
	return emit.WindowSpan(r, config.Spans{})
}

// The numbers in the queue's comment: how long a backend may be away, and that the estimate is no less than the
// memory that is really taken.
func TestQueueHolds(t *testing.T) {
	e := withExporter(failing{errors.New("connection refused")})
	q := e.spans.queue
	defer func() { e.Close(canceled(t)) }()
	end := func() {
		s := slowEpoch()
		for i, kv := range s.Attributes { // each report has texts of its own
			if kv.Value.Type() == attribute.STRING {
				s.Attributes[i] = kv.Key.String(strings.Clone(kv.Value.AsString()))
			}
		}
		e.Begin(s.Name, s.Start, trace.SpanContext{}).End(s)
	}
	end()
	one := q.Bytes()
	windows := maxSpanBytes / one
	before := heap()
	for range windows - 1 {
		end()
	}
	taken := heap() - before
	if c := q.Counts(); c.Dropped != 0 || c.Waiting != 4*uint64(windows) {
		t.Fatalf("counts: got %+v, want %d waiting and none dropped", c, 4*windows)
	}
	t.Logf("one window: %d bytes by the estimate; %d windows, %.1f hours at one a minute; %.1f MiB of memory for %.1f MiB",
		one, windows, float64(windows)/60, float64(taken)/(1<<20), float64(q.Bytes())/(1<<20))
	if windows < 2500 {
		t.Errorf("windows in a full queue: got %d, want at least the 2,500 of the comment", windows)
	}
	if taken > maxSpanBytes*11/10 {
		t.Errorf("memory of a full queue: got %d bytes, want at most a tenth more than %d", taken, maxSpanBytes)
	}
}

// failing is a span exporter that returns its error.
type failing struct{ error }

func (f failing) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return f.error }
func (f failing) Shutdown(context.Context) error                             { return nil }

// withExporter exports spans through exporter.
func withExporter(exporter sdktrace.SpanExporter) *Exporter {
	p := newSpanProcessor(exporter, resource.NewSchemaless(attribute.String("host.name", "node-1"),
		attribute.String("service.instance.id", "7"), attribute.Int("process.pid", 1)))
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(p))
	return &Exporter{tracers: provider, tracer: provider.Tracer("test"), spans: p}
}

// heap returns the memory in use, in bytes.
func heap() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

func BenchmarkQueue(b *testing.B) {
	e := withExporter(failing{nil})
	s := slowEpoch()
	b.ReportAllocs()
	for b.Loop() {
		e.Begin(s.Name, s.Start, trace.SpanContext{}).End(s)
	}
	e.Close(context.Background())
}
