package emit_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
)

// Whatever the sources say and wherever the wall clock is set to, a point never begins after its end.
func TestPointsBeginBeforeTheyEnd(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		m := emit.NewMetrics("")
		now := at(time.Hour)
		for range 10 {
			now.Mono += time.Duration(random.Int64N(int64(20 * time.Second)))
			now.Wall = now.Wall.Add(time.Duration(random.Int64N(int64(4*time.Hour))) - 2*time.Hour)
			s := randomSnapshot(random, now)
			r := &window.Report{Window: window.Window{Kind: window.Epoch, Start: now, End: now}}
			r.End.Mono += time.Duration(random.Int64N(int64(time.Hour)))
			m.Durations.Add(r, trace.SpanContext{})
			for _, metric := range m.Collect(s).Metrics {
				times(metric, func(start, end time.Time) {
					if end.IsZero() || start.After(end) {
						t.Errorf("%s: from %v to %v", metric.Name, start, end)
					}
				})
			}
		}
	}
}

func randomSnapshot(random *rand.Rand, now sample.Stamp) sample.Snapshot {
	any64 := func() uint64 { return random.Uint64() >> random.IntN(64) }
	spent := func() time.Duration { return time.Duration(any64() >> 1) }
	s := sample.Snapshot{Boot: booted}
	s.Disks = sample.Sample{At: now, Disks: []sample.Disk{{Name: "vda", ReadIOs: any64(), WriteIOs: any64(),
		ReadBytes: any64(), ReadTicks: spent(), IOTicks: spent(), TimeInQueue: spent()}}}
	s.Pressures = sample.Sample{At: now, Pressures: []sample.Pressure{{Resource: sample.IO, Some: spent(), Full: spent()}}}
	s.Cores = sample.Sample{At: now, Cores: []sample.Core{{Name: "cpu0", User: spent(), Idle: spent(), IOWait: spent()}}}
	s.Jobs = sample.Sample{At: now, Processes: []sample.Process{{PID: 1, ReadBytes: any64(), HasIO: true,
		Started: spent()}}}
	began := sample.Stamp{Mono: now.Mono / 2}
	began.Wall = now.Wall.Add(time.Duration(random.Int64N(int64(time.Hour))) - time.Minute)
	s.Latencies = sample.Sample{At: now, Latencies: []sample.Latency{{Disk: "vda", Operation: sample.ReadOperation,
		Began:            began,
		LatencyHistogram: &sample.LatencyHistogram{Sum: spent(), First: 40, Counts: []uint64{any64()}}}}}
	detail := sample.GPUDetail{GPU: "GPU-1", At: now.Mono - time.Duration(random.Int64N(int64(time.Minute))),
		XIDs: []sample.XID{{Code: 79, Count: any64()}}}
	for q := range sample.GPUQuantities {
		detail.Values.Set(q, random.NormFloat64()*float64(any64()))
	}
	s.GPUs = sample.Sample{At: now, GPUs: []sample.GPU{{ID: "GPU-1", Busy: spent()}},
		GPUDetails: []sample.GPUDetail{detail}}
	s.GPUs.DriverUse = &sample.DriverUse{Calls: []sample.DriverCall{{Name: "f", Count: any64(), Time: spent()}},
		Dropped: any64()}
	return s
}

func times(m metricdata.Metrics, yield func(start, end time.Time)) {
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		for _, p := range data.DataPoints {
			yield(p.StartTime, p.Time)
		}
	case metricdata.Sum[float64]:
		for _, p := range data.DataPoints {
			yield(p.StartTime, p.Time)
		}
	case metricdata.Gauge[float64]:
		for _, p := range data.DataPoints {
			yield(p.StartTime, p.Time)
		}
	case metricdata.ExponentialHistogram[float64]:
		for _, p := range data.DataPoints {
			yield(p.StartTime, p.Time)
		}
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			yield(p.StartTime, p.Time)
		}
	}
}
