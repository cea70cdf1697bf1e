package export

import (
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
)

// The time that a job lost to storage leads to the spans of the slow windows that ended since the last collection.
func TestExemplarsOfSlowWindows(t *testing.T) {
	for _, protocol := range []string{"grpc", "http/protobuf"} {
		t.Run(protocol, func(t *testing.T) {
			var b backend
			if protocol == "grpc" {
				b.serve(t, "", nil)
			} else {
				b.address = b.serveHTTP(t, 0, "").Listener.Addr().String()
			}
			environment(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://" + b.address,
				"OTEL_EXPORTER_OTLP_PROTOCOL": protocol, "OTEL_METRIC_EXPORT_INTERVAL": "3600000"})
			m, now := emit.NewMetrics("1.2.3"), sample.Now()
			began := sample.Stamp{Mono: now.Mono - time.Hour, Wall: now.Wall.Add(-time.Hour)}
			e, err := New(t.Context(), Options{Jobs: m.Jobs, Collect: func() metricdata.ScopeMetrics {
				return m.Collect(sample.Snapshot{Boot: began.Wall, GPUs: sample.Sample{At: now}, GPUTimes: []sample.GPUTime{
					{GPU: "GPU-1", Job: "train", Began: began, Until: now, Held: true, Storage: time.Minute}}})
			}})
			if err != nil {
				t.Fatal(err)
			}
			span := e.Begin("epoch", began.Wall, trace.SpanContext{})
			m.Durations.Add(&window.Report{Judgement: window.Judgement{Slow: true}, Ledger: window.Ledger{Storage: 5 * time.Second}, Window: window.Window{Kind: window.Epoch, Job: "train", Start: began, End: now}}, span.Exemplar())
			for range 2 {
				if err := e.Flush(within(t, patience)); err != nil {
					t.Fatal(err)
				}
			}
			found := 0
			b.mu.Lock()
			for _, r := range b.metrics {
				for _, metric := range r.ScopeMetrics[0].Metrics {
					for _, p := range metric.GetSum().GetDataPoints() {
						for _, x := range p.Exemplars {
							found++
							if trace.SpanID(x.SpanId) != span.SpanContext().SpanID() || x.GetAsDouble() != 5 ||
								trace.TraceID(x.TraceId) != span.SpanContext().TraceID() || metric.Name != "stallspan.gpu.time" {
								t.Errorf("%s: got %+v, want 5 s of the span %v", metric.Name, x, span.SpanContext())
							}
						}
					}
				}
			}
			b.mu.Unlock()
			if found != 1 {
				t.Errorf("got %d exemplars in two collections, want one", found)
			}
			span.Drop()
			_ = e.Close(within(t, patience))
		})
	}
}
