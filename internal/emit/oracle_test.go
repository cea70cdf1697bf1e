package emit_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/internal/alert"
	"github.com/stallspan/stallspan/internal/config"
	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/ledger"
	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/recording"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/semconv"
	"github.com/stallspan/stallspan/test/fixture"
	"github.com/stallspan/stallspan/test/fixture/tape"
	"github.com/stallspan/stallspan/test/signals"
)

// elsewhere is what is registered and comes from no reading and no report, with where it does come from.
var elsewhere = map[string]string{
	"span stallspan.run": "the agent makes it of the wrapped program's name, its process and its exit code",
}

// TestRegistry holds everything that recordings and reports turn into against the registry, both ways: nothing may be
// emitted that is not registered as it is, and nothing registered that is emitted by none of them.
func TestRegistry(t *testing.T) {
	o := newOracle()
	paths, err := filepath.Glob(fixture.File(t, "recordings", "*.jsonl.gz"))
	if err != nil || len(paths) < 2 {
		t.Fatalf("found %d recordings: %v", len(paths), err)
	}
	for _, path := range paths {
		if windows := replay(t, path, o); windows == 0 {
			t.Errorf("%s holds no whole window", filepath.Base(path))
		}
	}
	whole := emit.NewMetrics("test") // the recorded GPU lacks some readings, and is not a slice
	whole.Own = func() emit.Own { return emit.Own{Since: booted, Panics: 1, Late: 2, Lost: 3} }
	for i := range 2 {
		o.metrics(whole.Collect(wholeGPU(time.Hour + time.Duration(i)*time.Second)))
	}
	o.metrics(emit.NewMetrics("test").Collect(round(time.Hour, eachProtocol()...)))
	o.metrics(emit.NewMetrics("test").Collect(withLatencies(time.Hour)))
	o.metrics(emit.NewMetrics("test").Collect(mounted(time.Hour)))
	jobs := emit.NewMetrics("test")
	jobs.Collect(withLatencies(time.Hour))
	for _, job := range jobs.Jobs() {
		o.metrics(job.Metrics)
	}
	for _, r := range rare() {
		o.span(r, emit.WindowSpan(r, config.Spans{Page: "http://gpu1:4319"}))
	}
	for _, name := range emit.EventNames() {
		e, err := emit.NewTestEvent(name, start)
		if err != nil {
			t.Error(err)
		}
		o.event(e)
	}
	for kind := range alert.LimitsOf {
		o.event(emit.Happened(over(kind)))
	}
	o.event(emit.Happened(over(alert.IOStorm)))
	if e, _, err := emit.Reported(parse(t, reportedBody), "uid 1000", start); err != nil {
		t.Error(err)
	} else {
		o.event(e)
	}
	for _, problem := range o.sorted() {
		t.Errorf("registry: got %v, want none", problem)
	}
	missed := o.missed()
	for _, name := range missed {
		if elsewhere[name] == "" {
			t.Errorf("%s: registered, but emitted by no recording", name)
		}
	}
	for name := range elsewhere {
		if !slices.Contains(missed, name) {
			t.Errorf("%s: is emitted after all: take it off the list", name)
		}
	}
}

// replay puts a recording through a monitor. Once a second of its own time it collects the metrics and ends a window
// of each kind, which began when the last ones ended.
func replay(t *testing.T, path string, o *oracle) (windows int) {
	t.Helper()
	metrics := emit.NewMetrics("test")
	var due, newest time.Duration
	var open []string
	m := tape.Play(t, path, func(m *monitor.Monitor, e *recording.Entry) {
		if e.Sample != nil {
			newest = max(newest, e.Sample.At.Mono)
		}
		if e.Mark == nil || e.Mark.Op != recording.Tick || newest < due {
			return
		}
		due = newest + time.Second
		now := m.Now()
		for _, id := range open {
			r, err := m.Windows.Cut(id, now, window.Outcome{Unfinished: windows%8 >= 4})
			if err != nil {
				t.Fatal(err)
			}
			if r.Split && r.Busy+r.Storage+r.CPU+r.Other != r.GPUTime() {
				t.Errorf("the ledger does not add up: %+v", r)
			}
			t.Logf("%s: %v %s %s", filepath.Base(path), r.Kind, r.Verdict, explain.Finding(r))
			metrics.Durations.Add(r, trace.SpanContext{})
			o.span(r, emit.WindowSpan(r, config.Spans{Page: "http://gpu1:4319"}))
			windows++
		}
		o.metrics(metrics.Collect(m.Collect()))
		for _, job := range metrics.Jobs() {
			o.metrics(job.Metrics)
		}
		open = begin(t, m, now)
	})
	for _, problem := range m.Problems() {
		t.Errorf("%s: got the problem %v, want none", filepath.Base(path), problem)
	}
	return windows
}

// begin opens a window of each kind that says all that its kind can say.
func begin(t *testing.T, m *monitor.Monitor, at monitor.Moment) (ids []string) {
	t.Helper()
	for _, w := range []window.Window{
		{Kind: window.ModelLoad, Model: "model", Path: "/models/model.bin",
			Seen: window.Seen{Size: 7 << 30, Cached: 2 << 30, HasCached: true}},
		{Kind: window.Epoch, Epoch: 1, HasEpoch: true},
		{Kind: window.Checkpoint, Name: "checkpoint"},
		{Kind: window.Steps, Name: "steps"},
		{Kind: window.Custom, Name: "custom"},
	} {
		w.Job, w.Run, w.Source = "train", "train.py", window.Announced
		id, err := m.Windows.Begin(w, at)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	return ids
}

// rare are reports of what the recorded machines do not have: a mount without a disk of the machine, windows whose ends
// were not announced, a load that did not end, a disk that left, and an I/O storm.
func rare() (reports []*window.Report) {
	at := sample.Stamp{Mono: time.Hour, Wall: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	for _, kind := range []window.Kind{window.ModelLoad, window.Epoch, window.Checkpoint} {
		r := &window.Report{
			Facts: window.Facts{Scope: window.Host, Mounts: []sample.Mount{{Point: "/data", Type: "nfs4", Source: "server:/data"}}},
			Window: window.Window{
				Kind: kind, Model: "model", Run: "train.py", Source: window.FromSpan,
				Outcome: window.Outcome{Unfinished: true}, Start: at,
				End: sample.Stamp{Mono: at.Mono + time.Minute, Wall: at.Wall.Add(time.Minute)},
			},
			Ledger:    window.Ledger{Storage: 40 * time.Second, Other: 20 * time.Second, Split: true, Evidence: window.FromSchedule, Network: 10 * time.Second, OtherReasons: []window.OtherReason{{Kind: window.OtherPipe, Name: "pipe", Time: 20 * time.Second}}},
			Judgement: window.Judgement{Verdict: window.StorageBound, Speedup: 3, Slow: true, SlowReason: window.SlowStorage, Uncertainty: 0.02, Interrupted: true},
			Further:   window.Further{Findings: []window.Finding{window.FailingDisk{Text: "finding", Remedy: "remedy"}}, Stalls: []window.Stall{{Start: at.Mono, End: at.Mono + time.Second}}},
			Who:       sample.JobName{ID: "process 42", PID: 42, Name: "train.py"},
			Storms:    []window.Storm{{Disk: "sda", Windows: 3, Since: at.Mono + time.Second}},
		}
		if kind != window.Checkpoint {
			r.Baseline = &window.Baseline{Median: 11 * time.Second, P95: 12 * time.Second, Count: 23}
		}
		if kind == window.Epoch {
			r.Steps = &ledger.Steps{Period: 300 * time.Millisecond, Count: 190, Confidence: 0.97}
		}
		reports = append(reports, r, detected(r))
	}
	return reports
}

// detected returns a report as if its window was found from the outside. A load has phases, with a GPU and without.
func detected(r *window.Report) *window.Report {
	found := *r
	found.Source, found.Confidence = window.Detected, 0.9
	if r.Kind != window.ModelLoad {
		return &found
	}
	for i, gpus := range [][]string{{"GPU-1"}, nil} {
		part := *r
		part.GPUIDs, part.Job, part.Scope = gpus, "train", window.Process
		start := r.Start.Mono + time.Duration(i)*time.Second
		found.Phases = append(found.Phases, window.Phase{Name: "read", Start: start, End: start + time.Second, Bytes: 1})
		found.PhaseReports = append(found.PhaseReports, &part)
	}
	return &found
}

// TestOracle gives the oracle what it must refuse.
func TestOracle(t *testing.T) {
	o := newOracle()
	start, end := booted, booted.Add(time.Hour)
	sda, read := semconv.SystemDeviceNameKey.String("sda"), semconv.DiskIODirectionRead
	counter := func(attrs ...attribute.KeyValue) metricdata.Sum[int64] {
		p := metricdata.DataPoint[int64]{Attributes: attribute.NewSet(attrs...), StartTime: start, Time: end}
		return metricdata.Sum[int64]{Temporality: metricdata.CumulativeTemporality, IsMonotonic: true,
			DataPoints: []metricdata.DataPoint[int64]{p}}
	}
	twice := counter(sda, read)
	twice.DataPoints = append(twice.DataPoints, twice.DataPoints...)
	early := counter(sda, read)
	early.DataPoints[0].StartTime = end
	falling := counter(sda, read)
	falling.IsMonotonic = false
	for want, data := range map[string]metricdata.Aggregation{
		"":                                      counter(sda, read),
		"required disk.io.direction is missing": counter(sda),
		"process.pid is not registered there":   counter(sda, read, semconv.ProcessPIDKey.Int(1)),
		"is INT64, registered as STRING":        counter(semconv.SystemDeviceNameKey.Int(1), read),
		"two points with the attributes":        twice,
		"a point from":                          early,
		"emitted as updowncounter":              falling,
		"emitted as gauge":                      metricdata.Gauge[float64]{},
	} {
		o.problems = map[string]bool{}
		o.metric(semconv.SystemDiskIO, metricdata.Metrics{Name: semconv.SystemDiskIO.Name, Unit: "By",
			Description: semconv.SystemDiskIO.Description, Data: data})
		if got := strings.Join(o.sorted(), "; "); !strings.Contains(got, want) || (want == "") != (got == "") {
			t.Errorf("complaints %q, want one of %q", got, want)
		}
	}
	o.problems = map[string]bool{}
	o.oneSpan(signals.StorageStall, emit.Span{Start: start, End: end, Attributes: []attribute.KeyValue{sda,
		semconv.ModelNameKey.String("x")},
		Events: []emit.Event{{Name: "unheard-of", Time: start}, {Name: semconv.WindowSlowEvent.Name, Time: start}}})
	if got := o.sorted(); len(got) != 4 {
		t.Errorf("complaints about a span: %q", got)
	}
}
