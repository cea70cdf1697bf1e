package emit_test

import (
	"strconv"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
)

func exemplar(id byte) trace.SpanContext {
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{15: id}, SpanID: trace.SpanID{7: id}})
}

// TestDurations adds three loads of one model, with the longest and the newest as exemplars; a load of another model,
// in the last bucket and without a span; and an epoch. A window of another kind has no histogram.
func TestDurations(t *testing.T) {
	m := emit.NewMetrics("1.2.3")
	add := func(kind window.Kind, name string, start, length time.Duration, span trace.SpanContext) {
		w := between(kind, start, start+length)
		w.Model, w.Run = name, name
		m.Durations.Add(&window.Report{Window: w, Verdict: window.GPUBound, Evidence: window.FromSchedule}, span)
	}
	add(window.ModelLoad, "llama", time.Hour, 100*ms, exemplar(1))
	add(window.ModelLoad, "llama", time.Hour+time.Second, 4*time.Second, exemplar(2))
	add(window.ModelLoad, "llama", time.Hour+6*time.Second, 200*ms, exemplar(3))
	add(window.ModelLoad, "", time.Hour, 20*time.Minute, trace.SpanContext{})
	add(window.Epoch, "train.py", time.Hour, 90*time.Second, exemplar(4))
	add(window.Checkpoint, "train.py", time.Hour, 90*time.Second, exemplar(5))
	golden(t, "durations", metricsText(m.Collect(sample.Snapshot{Boot: booted,
		Pressures: sample.Sample{At: at(time.Hour)}})))
}

func histogram(t *testing.T, scope metricdata.ScopeMetrics) metricdata.Histogram[float64] {
	t.Helper()
	if len(scope.Metrics) != 1 {
		t.Fatalf("%d metrics", len(scope.Metrics))
	}
	return scope.Metrics[0].Data.(metricdata.Histogram[float64])
}

// A program that names every load differently has a bounded number of sets. The newest ones are there, and one that is
// in use is never replaced.
func TestDurationsAreBounded(t *testing.T) {
	m := emit.NewMetrics("")
	add := func(model string, at time.Duration) {
		w := between(window.ModelLoad, at, at+time.Second)
		w.Model = model
		m.Durations.Add(&window.Report{Window: w}, exemplar(1))
	}
	const loads = 1000
	for i := range loads {
		add(strconv.Itoa(i), time.Hour+time.Duration(i)*time.Minute)
		add("steady", time.Hour+time.Duration(i)*time.Minute)
	}
	counts := map[string]uint64{}
	starts := map[string]time.Time{}
	points := histogram(t, m.Collect(sample.Snapshot{})).DataPoints
	for _, p := range points {
		model, _ := p.Attributes.Value("stallspan.model.name")
		counts[model.AsString()], starts[model.AsString()] = p.Count, p.StartTime
	}
	newest := strconv.Itoa(loads - 1)
	if len(points) != 256 || counts["steady"] != loads || counts[newest] != 1 || counts["0"] != 0 {
		t.Errorf("got %d sets, %d steady loads, %d of the newest model; want 256, %d, 1", len(points), counts["steady"],
			counts[newest], loads)
	}
	if first := starts["steady"]; !starts[newest].After(first) {
		t.Errorf("got the start %v of the newest set, want a later one than %v", starts[newest], first)
	}
}

// What was collected stays as it was while windows go on ending.
func TestCollectedDurationsStay(t *testing.T) {
	m := emit.NewMetrics("")
	end := func() {
		m.Durations.Add(&window.Report{Window: between(window.Epoch, time.Hour, time.Hour+time.Second)}, exemplar(1))
	}
	end()
	before := histogram(t, m.Collect(sample.Snapshot{})).DataPoints[0]
	end()
	end()
	var held uint64
	for _, n := range before.BucketCounts {
		held += n
	}
	if before.Count != 1 || held != 1 || len(before.Exemplars) != 1 {
		t.Errorf("a collected point changed: %+v", before)
	}
}
