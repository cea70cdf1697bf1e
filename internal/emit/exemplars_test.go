package emit_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/semconv"
)

// slowReport is a slow window that ended an hour after the start, or later, and waited for storage.
func slowReport(job string, later, waited time.Duration) *window.Report {
	end := sample.Stamp{Mono: time.Hour + later, Wall: start.Add(time.Hour + later)}
	w := window.Window{Kind: window.Custom, Job: job, End: end,
		Start: sample.Stamp{Mono: end.Mono - time.Minute, Wall: end.Wall.Add(-time.Minute)}}
	return &window.Report{Window: w, Judgement: window.Judgement{Slow: true}, Ledger: window.Ledger{Storage: waited}}
}

// exemplarsOf returns the last bytes of the spans of all points by metric, cause and GPU.
func exemplarsOf(jobs ...emit.JobMetrics) map[string]string {
	all := map[string]string{}
	for _, j := range jobs {
		for _, m := range j.Metrics.Metrics {
			sum, _ := m.Data.(metricdata.Sum[float64])
			for _, p := range sum.DataPoints {
				for _, e := range p.Exemplars {
					all[m.Name+" "+p.Attributes.Encoded(attribute.DefaultEncoder())] += fmt.Sprintf("%d ", e.SpanID[7])
				}
			}
		}
	}
	return all
}

func TestExemplarsOfSlowWindows(t *testing.T) {
	m := emit.NewMetrics("test")
	now := withJobs(time.Hour)
	m.Collect(withJobs(time.Hour))
	add := func(r *window.Report, id byte) { m.Durations.Add(r, exemplar(id)) }
	add(slowReport("train", 0, 3*time.Second), 1)
	add(slowReport("prepare", 0, time.Second), 2)
	add(slowReport("", 0, time.Second), 3)                                    // of no job
	add(slowReport("unknown", 0, time.Second), 4)                             // of a job that has no row
	add(slowReport("train", 0, 0), 5)                                         // it did not wait for storage
	m.Durations.Add(slowReport("train", 0, time.Second), trace.SpanContext{}) // without a span
	fast := slowReport("train", 0, time.Second)
	fast.Slow = false
	add(fast, 6)
	other := slowReport("train", 0, time.Second)
	other.GPUIDs = []string{"GPU-2"}
	add(other, 7)
	within := slowReport("process 7 of 1", 0, time.Second) // announced for a process of the job
	within.PID, within.GPUIDs = 7, []string{"GPU-1"}
	add(within, 8)
	now.Jobs.Processes = []sample.Process{{PID: 7, Job: "train"}, {PID: 8, Job: "prepare"}}
	m.Collect(now)
	want := map[string]string{
		"stallspan.gpu.time hw.id=GPU-1,stallspan.gpu.time.cause=storage": "1 8 ",
		"stallspan.job.stall.time stallspan.job.stall.cause=storage":      "2 ",
	}
	if got := exemplarsOf(m.Jobs()...); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %q, want %q", got, want)
	}
	gpu := m.Jobs()[0].Metrics.Metrics
	i := slices.IndexFunc(gpu, func(x metricdata.Metrics) bool { return x.Name == semconv.GPUTime.Name })
	sum, _ := gpu[i].Data.(metricdata.Sum[float64])
	for _, p := range sum.DataPoints {
		if len(p.Exemplars) > 0 && (p.Exemplars[0].Value != 3 || !p.Exemplars[0].Time.Equal(start.Add(time.Hour))) {
			t.Errorf("got %+v, want 3 s at the end of the window", p.Exemplars[0])
		}
	}
	if m.Collect(withJobs(time.Hour + time.Second)); len(exemplarsOf(m.Jobs()...)) != 0 {
		t.Errorf("the next collection: got %q, want none", exemplarsOf(m.Jobs()...))
	}
}

// For several servers that scrape, windows are shown for a while. Metrics without jobs show none.
func TestExemplarsAreRepeated(t *testing.T) {
	m, nameless := emit.NewMetrics("test"), emit.NewMetrics("test")
	m.RepeatSlow = time.Minute
	nameless.RepeatSlow, nameless.Nameless, nameless.Durations = time.Minute, true, m.Durations
	m.Durations.Add(slowReport("train", 0, time.Second), exemplar(1))
	for after, want := range map[time.Duration]int{time.Second: 1, 30 * time.Second: 1, 2 * time.Minute: 0} {
		m.Collect(withJobs(time.Hour)) // the first one has it in any case
		m.Collect(withJobs(time.Hour + after))
		if got := exemplarsOf(m.Jobs()...); len(got) != want {
			t.Errorf("after %v: got %q, want %d", after, got, want)
		}
	}
	for _, metric := range nameless.Collect(withJobs(time.Hour)).Metrics {
		if sum, ok := metric.Data.(metricdata.Sum[float64]); ok {
			for _, p := range sum.DataPoints {
				if len(p.Exemplars) > 0 {
					t.Errorf("%s: got %+v for callers that may not see the window", metric.Name, p.Exemplars)
				}
			}
		}
	}
}

// One job cannot displace the windows of another, and all are bounded.
func TestExemplarsAreBounded(t *testing.T) {
	m := emit.NewMetrics("test")
	m.Durations.Add(slowReport("prepare", 0, time.Second), exemplar(1))
	for i := range 1000 {
		m.Durations.Add(slowReport("train", 0, time.Second), exemplar(byte(i%200+2)))
	}
	m.Collect(withJobs(time.Hour))
	want := map[string]string{
		"stallspan.gpu.time hw.id=GPU-1,stallspan.gpu.time.cause=storage": "198 199 200 201 ",
		"stallspan.job.stall.time stallspan.job.stall.cause=storage":      "1 ",
	}
	if got := exemplarsOf(m.Jobs()...); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %q, want the newest four, and the other job's: %q", got, want)
	}
	for i := range 1000 {
		m.Durations.Add(slowReport(fmt.Sprint("job ", i), 0, time.Second), exemplar(1))
	}
	if got := m.Durations.Slow(); got != 256 {
		t.Errorf("got %d windows, want 256", got)
	}
}
