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
// in the last bucket and without a span; a detected load of the first model, which is counted apart; and an epoch. A
// window of another kind has no histogram.
func TestDurations(t *testing.T) {
	m := emit.NewMetrics("1.2.3")
	source := window.Announced
	add := func(kind window.Kind, name string, start, length time.Duration, span trace.SpanContext) {
		w := between(kind, start, start+length)
		w.Model, w.Run, w.Source = name, name, source
		m.Durations.Add(&window.Report{Window: w, Judgement: window.Judgement{Verdict: window.GPUBound}, Ledger: window.Ledger{Evidence: window.FromSchedule}}, span)
	}
	add(window.ModelLoad, "llama", time.Hour, 100*ms, exemplar(1))
	add(window.ModelLoad, "llama", time.Hour+time.Second, 4*time.Second, exemplar(2))
	add(window.ModelLoad, "llama", time.Hour+6*time.Second, 200*ms, exemplar(3))
	add(window.ModelLoad, "", time.Hour, 20*time.Minute, trace.SpanContext{})
	add(window.Epoch, "train.py", time.Hour, 90*time.Second, exemplar(4))
	add(window.Checkpoint, "train.py", time.Hour, 90*time.Second, exemplar(5))
	source = window.Detected
	add(window.ModelLoad, "llama", time.Hour+8*time.Second, 300*ms, exemplar(6))
	checkText(t, "durations", metricsText(m.Collect(sample.Snapshot{Boot: booted,
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

// However many windows are detected, they do not replace those that programs announce.
func TestDetectedDurationsLeaveRoom(t *testing.T) {
	m := emit.NewMetrics("")
	add := func(source window.Source, model string, at time.Duration) {
		w := between(window.ModelLoad, at, at+time.Second)
		w.Source, w.Model = source, model
		m.Durations.Add(&window.Report{Window: w}, exemplar(1))
	}
	for i := range 20 {
		add(window.Announced, "announced "+strconv.Itoa(i), time.Hour)
	}
	for i := range 1000 {
		add(window.Detected, "detected "+strconv.Itoa(i), time.Hour+time.Duration(i)*time.Minute)
	}
	counts := map[string]int{}
	for _, p := range histogram(t, m.Collect(sample.Snapshot{})).DataPoints {
		source, _ := p.Attributes.Value("stallspan.window.source")
		counts[source.AsString()]++
	}
	if counts["announced"] != 20 || counts["detected"] != 128 {
		t.Errorf("got sets %v, want 20 announced and 128 detected", counts)
	}
	for i := range 300 {
		add(window.Announced, "further "+strconv.Itoa(i), 48*time.Hour)
	}
	add(window.Detected, "last", 49*time.Hour) // the detected sets were replaced: there is room for one
	if n := len(histogram(t, m.Collect(sample.Snapshot{})).DataPoints); n != 256 {
		t.Errorf("got %d sets, want 256", n)
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
