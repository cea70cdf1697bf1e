package emit_test

import (
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/emit/otlp"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/semconv"
)

// withLatencies is withJobs, whose disk has operations of all programs, of a job, and of one without a resource.
func withLatencies(at time.Duration) sample.Snapshot {
	now := withJobs(at)
	stamp := func(at time.Duration) sample.Stamp { return sample.Stamp{Mono: at, Wall: start.Add(at)} }
	now.Latencies.At = stamp(at)
	of := func(job string, o sample.Operation, times ...time.Duration) sample.Latency {
		var all [sample.LatencyBuckets]uint64
		var zero uint64
		var sum time.Duration
		for _, d := range times {
			sum += d
			if b := sample.LatencyBucket(d); b < 0 {
				zero++
			} else {
				all[b]++
			}
		}
		return sample.Latency{Disk: "vda", Operation: o, Job: job, Began: stamp(time.Minute),
			LatencyHistogram: sample.NewLatencyHistogram(sum, zero, &all)}
	}
	now.Latencies.Latencies = []sample.Latency{
		of("", sample.ReadOperation, 500, time.Millisecond, 2*time.Millisecond, 180*time.Millisecond),
		of("", sample.WriteOperation, time.Second), of("", sample.FlushOperation, time.Second),
		of("", sample.DiscardOperation, time.Second),
		of("train", sample.ReadOperation, 2*time.Millisecond), of("unknown", sample.ReadOperation, time.Millisecond),
	}
	return now
}

// latencies returns the data points of the metric.
func latencies(t *testing.T, of metricdata.ScopeMetrics) []metricdata.ExponentialHistogramDataPoint[float64] {
	t.Helper()
	i := slices.IndexFunc(of.Metrics, func(m metricdata.Metrics) bool {
		return m.Name == semconv.DiskOperationDuration.Name
	})
	if i < 0 {
		return nil
	}
	return of.Metrics[i].Data.(metricdata.ExponentialHistogram[float64]).DataPoints
}

func TestLatencies(t *testing.T) {
	m := emit.NewMetrics("test")
	machine := m.Collect(withLatencies(time.Hour))
	points := latencies(t, machine)
	if len(points) != 4 {
		t.Fatalf("got %d points of the machine, want one for each operation", len(points))
	}
	p := points[0]
	direction, _ := p.Attributes.Value(semconv.DiskIODirectionKey)
	if direction.AsString() != "read" || p.Count != 4 || p.ZeroCount != 1 || p.Scale != 2 || p.Sum != 0.1830005 ||
		!p.StartTime.Equal(start.Add(time.Minute)) || !p.Time.Equal(start.Add(time.Hour)) {
		t.Errorf("got %+v, want 4 reads that took 183 ms", p)
	}
	// 1 ms is above 2^-10 s: bucket -40 at scale 2. 180 ms is above 2^-2.5 s and at most 2^-2.25 s.
	if c := p.PositiveBucket; c.Offset != -40 || c.Counts[0] != 1 || len(c.Counts) != 31 || c.Counts[30] != 1 {
		t.Errorf("got the buckets %d %v, want the first -40, and -10 the last", c.Offset, c.Counts)
	}
	for i, want := range []string{"read", "write", "flush", "discard"} {
		if got, _ := points[i].Attributes.Value(semconv.DiskIODirectionKey); got.AsString() != want {
			t.Errorf("direction %d: got %s, want %s", i, got.AsString(), want)
		}
	}
	jobs := m.Jobs()
	if len(jobs) != 2 {
		t.Fatalf("got %d jobs, want no more than without latencies: 2", len(jobs))
	}
	if own := latencies(t, jobs[0].Metrics); len(own) != 1 || own[0].Count != 1 {
		t.Errorf("got %+v of the job, want its one read", own)
	}
	if own := latencies(t, jobs[1].Metrics); len(own) != 0 {
		t.Errorf("got %+v of a job without operations, want none", own)
	}
	to := pmetric.NewResourceMetrics()
	new(otlp.Writer).Metrics(machine, to)
	found := false
	for _, metric := range to.ScopeMetrics().At(0).Metrics().All() {
		if metric.Name() != semconv.DiskOperationDuration.Name {
			continue
		}
		found = true
		got := metric.ExponentialHistogram().DataPoints().At(0)
		if got.Scale() != 2 || got.ZeroThreshold() != 1.0/(1<<20) || got.Positive().Offset() != -40 || got.Count() != 4 {
			t.Errorf("OTLP: got %d operations, scale %d, zero up to %v", got.Count(), got.Scale(), got.ZeroThreshold())
		}
	}
	if !found {
		t.Error("OTLP lacks the histogram")
	}
}

// A machine without the rights has no such metric.
func TestNoLatencies(t *testing.T) {
	if points := latencies(t, emit.NewMetrics("test").Collect(withJobs(time.Hour))); points != nil {
		t.Errorf("got %+v, want nothing", points)
	}
}
