package parity_test

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatatest/pmetrictest"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatatest/ptracetest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/agent/internal/export"
	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/emit/otlp"
	"github.com/stallspan/stallspan/test/fixture"
)

// TestParity replays every recording and sends what it turns into through the agent's exporter, which is the SDK's, to
// an OTLP server. What arrives there is what this package makes of the same.
func TestParity(t *testing.T) {
	paths, err := filepath.Glob(fixture.File(t, "recordings", "*.jsonl.gz"))
	if err != nil || len(paths) < 3 {
		t.Fatalf("found %d recordings: %v", len(paths), err)
	}
	events := 0
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			p := newParity(t)
			replay(t, path, p)
			t.Logf("%d spans, %d children, %d events, %d points, %d exemplars", p.spans, p.children, p.events, p.points,
				p.exemplars)
			short := filepath.Base(path) == "threads.jsonl.gz" // 1.6 s, for the tests of threads
			if !short && (p.spans < 16 || p.children == 0 || p.points < 250 || p.exemplars == 0) {
				t.Error("too little to compare")
			}
			events += p.events
		})
	}
	if events == 0 {
		t.Error("no recording has a slow window")
	}
}

// parity compares the agent's way out with this package's.
type parity struct {
	backend  *backend
	exporter *export.Exporter
	next     metricdata.ScopeMetrics // what the exporter is to collect
	writer   otlp.Writer
	parent   trace.SpanContext // of every second window

	spans, children, events, points, exemplars int // what was compared
}

const version = "1.2.3"

func newParity(t *testing.T) *parity {
	t.Helper()
	p := &parity{backend: serve(t)}
	environment(t, map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": "http://" + p.backend.address,
		"OTEL_METRIC_EXPORT_INTERVAL": "3600000",
	})
	state, err := trace.ParseTraceState("vendor=1")
	if err != nil {
		t.Fatal(err)
	}
	p.parent = trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1, 2, 3}, SpanID: trace.SpanID{4, 5, 6}, TraceFlags: trace.FlagsSampled, TraceState: state,
		Remote: true,
	})
	p.exporter, err = export.New(t.Context(), export.Options{
		Version: version,
		Collect: func() metricdata.ScopeMetrics { return p.next },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		p.next = metricdata.ScopeMetrics{}
		if lost := p.exporter.Close(ctx).Lost(); lost != "" {
			t.Errorf("lost: got %q, want nothing", lost)
		}
	})
	return p
}

// patience is for how long a test waits before it calls something stuck.
const patience = 30 * time.Second

func (p *parity) flush(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := p.exporter.Flush(ctx); err != nil {
		t.Fatal(err)
	}
}

// metrics compares two scopes that hold the same and share no memory.
func (p *parity) metrics(t *testing.T, sent, written metricdata.ScopeMetrics) {
	t.Helper()
	p.next = sent
	p.flush(t)
	p.next = metricdata.ScopeMetrics{}
	want := p.backend.takeMetrics()
	if want.ResourceMetrics().Len() != 1 {
		t.Fatalf("the server got %d resources of metrics", want.ResourceMetrics().Len())
	}
	got := pmetric.NewMetrics()
	resource := got.ResourceMetrics().AppendEmpty()
	want.ResourceMetrics().At(0).Resource().CopyTo(resource.Resource())
	resource.SetSchemaUrl(want.ResourceMetrics().At(0).SchemaUrl())
	p.writer.Metrics(written, resource)
	if err := pmetrictest.CompareMetrics(want, got); err != nil {
		t.Error(err)
	}
	// To the byte, for what pmetrictest does not look at.
	marshaler := pmetric.ProtoMarshaler{}
	a, errA := marshaler.MarshalMetrics(want)
	b, errB := marshaler.MarshalMetrics(got)
	if err := errors.Join(errA, errB); err != nil || !bytes.Equal(a, b) {
		t.Errorf("the metrics differ in %d and %d bytes: %v", len(a), len(b), err)
	}
	p.points += got.DataPointCount()
	p.exemplars += exemplars(got)
}

func exemplars(m pmetric.Metrics) (n int) {
	list := m.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics()
	for _, m := range list.All() {
		if m.Type() == pmetric.MetricTypeHistogram {
			for _, point := range m.Histogram().DataPoints().All() {
				n += point.Exemplars().Len()
			}
		}
	}
	return n
}

// span compares a window's span and its children. open has been ended with s.
func (p *parity) span(t *testing.T, open *export.Open, parent trace.SpanContext, s emit.Span) {
	t.Helper()
	p.flush(t)
	want := p.backend.takeSpans()
	if want.SpanCount() == 0 {
		t.Fatal("the server got no spans")
	}
	got := ptrace.NewTraces()
	resource := got.ResourceSpans().AppendEmpty()
	want.ResourceSpans().At(0).Resource().CopyTo(resource.Resource())
	resource.SetSchemaUrl(want.ResourceSpans().At(0).SchemaUrl())
	scope := resource.ScopeSpans().AppendEmpty()
	scope.SetSchemaUrl(emit.Scope(version).SchemaURL)
	otlp.Scope(emit.Scope(version), scope.Scope())
	otlp.Span(s, open.SpanContext(), parent, scope.Spans())
	numbered(want)
	numbered(got)
	if err := ptracetest.CompareTraces(want, got); err != nil {
		t.Error(err)
	}
	// To the byte, for what ptracetest does not look at, as the flags.
	marshaler := ptrace.ProtoMarshaler{}
	a, errA := marshaler.MarshalTraces(want)
	b, errB := marshaler.MarshalTraces(got)
	if err := errors.Join(errA, errB); err != nil || !bytes.Equal(a, b) {
		t.Errorf("the spans differ in %d and %d bytes: %v", len(a), len(b), err)
	}
	p.spans++
	p.children += got.SpanCount() - 1
	p.events += len(s.Events)
}
