package emit_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/semconv"
)

// withJobs is a snapshot with a job on a GPU, one without, one that ended an hour ago, and time that no job held.
func withJobs(at time.Duration) sample.Snapshot {
	now := round(at)
	now.GPUs.At = sample.Stamp{Mono: at, Wall: start.Add(at)}
	stamp := func(at time.Duration) sample.Stamp { return sample.Stamp{Mono: at, Wall: start.Add(at)} }
	now.GPUTimes = []sample.GPUTime{
		{GPU: "GPU-1", Began: stamp(0), Until: stamp(at), Idle: 30 * time.Minute, Busy: time.Second},
		{GPU: "GPU-1", Job: "train", Began: stamp(0), Until: stamp(at), Held: true, Busy: 20 * time.Minute,
			Storage: 5 * time.Minute, CPU: 3 * time.Minute, Other: 2 * time.Minute, Allocated: 30 * time.Minute},
		{Job: "prepare", Began: stamp(0), Until: stamp(at), Held: true, Storage: time.Minute, CPU: 2 * time.Minute,
			Other: 3 * time.Minute},
		{GPU: "GPU-1", Job: "old", Began: stamp(0), Until: stamp(at - 11*time.Minute), Busy: time.Minute},
	}
	now.Peers.At = stamp(at)
	now.Peers.Peers = []sample.Peer{
		{Job: "train", Address: "10.0.0.7:443", Received: 5000, Sent: 70},
		{Job: "train", Address: "10.0.0.8:443", Received: 600, Sent: 8},
		{Job: "gone", Address: "10.0.0.8:443", Received: 1},
	}
	now.JobNames = []sample.JobName{{ID: "train", PID: 42, Name: "llm-7b", User: "ann", Attributes: []sample.Attribute{
		{Key: "host.name", Value: "forged"}, {Key: "k8s.pod.name", Value: "llm-7b"}, {Key: "service.name", Value: "forged"},
	}}}
	return now
}

func TestJobs(t *testing.T) {
	m := emit.NewMetrics("test")
	machine := m.Collect(withJobs(time.Hour))
	jobs := m.Jobs()
	if len(jobs) != 2 {
		t.Fatalf("got %d jobs, want 2: one ended long ago", len(jobs))
	}
	for _, test := range []struct {
		of     metricdata.ScopeMetrics
		metric *semconv.Metric
		want   map[string]float64
	}{
		{machine, &semconv.GPUTime, map[string]float64{"idle": 1800, "busy": 1, "other": 0}},
		{jobs[0].Metrics, &semconv.GPUTime, map[string]float64{"busy": 1200, "storage": 300, "cpu": 180, "other": 120}},
		{jobs[0].Metrics, &semconv.GPUAllocatedTime, map[string]float64{"": 1800}},
		{jobs[1].Metrics, &semconv.JobStallTime, map[string]float64{"storage": 60, "other": 180}},
	} {
		i := slices.IndexFunc(test.of.Metrics, func(x metricdata.Metrics) bool { return x.Name == test.metric.Name })
		if i < 0 {
			t.Errorf("got no %s", test.metric.Name)
			continue
		}
		sum, _ := test.of.Metrics[i].Data.(metricdata.Sum[float64])
		if !sum.IsMonotonic || len(sum.DataPoints) != len(test.want) {
			t.Errorf("%s: got %d points, monotonic %v, want %d, true", test.metric.Name, len(sum.DataPoints), sum.IsMonotonic,
				len(test.want))
		}
		for _, p := range sum.DataPoints {
			cause, _ := p.Attributes.Value(semconv.GPUTimeCauseKey)
			if cause.AsString() == "" {
				cause, _ = p.Attributes.Value(semconv.JobStallCauseKey)
			}
			if want, known := test.want[cause.AsString()]; !known || p.Value != want || !p.Time.Equal(start.Add(time.Hour)) {
				t.Errorf("%s %s: got %v at %v, want %v at %v", test.metric.Name, cause.AsString(), p.Value, p.Time, want,
					start.Add(time.Hour))
			}
		}
	}
}

// The bytes of all peers are one counter: addresses would be any number of series.
func TestJobNetwork(t *testing.T) {
	m := emit.NewMetrics("test")
	m.Collect(withJobs(time.Hour))
	got := map[string]int64{}
	for _, job := range m.Jobs() {
		for _, x := range job.Metrics.Metrics {
			if sum, ok := x.Data.(metricdata.Sum[int64]); ok && x.Name == semconv.ProcessNetworkIO.Name {
				for _, p := range sum.DataPoints {
					direction, _ := p.Attributes.Value(semconv.NetworkIODirectionKey)
					got[direction.AsString()] += p.Value
					if p.Attributes.Len() != 1 {
						t.Errorf("got attributes %v, want the direction alone", p.Attributes.ToSlice())
					}
				}
			}
		}
	}
	if len(got) != 2 || got["receive"] != 5600 || got["transmit"] != 78 {
		t.Errorf("got %v, want 5600 bytes received and 78 sent, of one job", got)
	}
}

// A job may not say which machine or service it is, and does not get this program's own pod.
func TestJobResource(t *testing.T) {
	m := emit.NewMetrics("test")
	m.Collect(withJobs(time.Hour))
	machine := []attribute.KeyValue{
		attribute.String("host.name", "gpu1"), attribute.String("service.name", "stallspan"),
		attribute.String("k8s.pod.name", "stallspan-x"), attribute.String("k8s.pod.uid", "u"),
		attribute.String("k8s.node.name", "node1"), attribute.String("service.instance.id", "machine"),
	}
	jobs := m.Jobs()
	instance := func(job int, of string) string {
		for _, a := range jobs[job].Resource([]attribute.KeyValue{attribute.String("service.instance.id", of)}) {
			if a.Key == "service.instance.id" {
				return a.Value.AsString()
			}
		}
		return ""
	}
	if a, b, c := instance(0, "machine"), instance(1, "machine"), instance(0, "other"); len(a) != 36 || a == b || a == c ||
		a != instance(0, "machine") {
		t.Errorf("got the instances %s and %s of two jobs, and %s on another machine, want three UUIDs", a, b, c)
	}
	var got []string
	for _, a := range m.Jobs()[0].Resource(machine) {
		if a.Key != "service.instance.id" {
			got = append(got, string(a.Key)+"="+a.Value.String())
		}
	}
	slices.Sort(got)
	want := "host.name=gpu1 k8s.node.name=node1 k8s.pod.name=llm-7b process.pid=42 service.name=stallspan " +
		"stallspan.job.name=llm-7b"
	if strings.Join(got, " ") != want {
		t.Errorf("got %s, want %s", strings.Join(got, " "), want)
	}
}

// The counters of a job that has ended are emitted for ten minutes, also on a machine without GPUs.
func TestEndedJobWithoutGPU(t *testing.T) {
	for _, test := range []struct {
		ended time.Duration
		want  int
	}{{9 * time.Minute, 1}, {11 * time.Minute, 0}} {
		stamp := func(at time.Duration) sample.Stamp { return sample.Stamp{Mono: at, Wall: start.Add(at)} }
		now := sample.Snapshot{Cores: sample.Sample{At: stamp(time.Hour), Cores: []sample.Core{{Name: "cpu0"}}}}
		now.GPUTimes = []sample.GPUTime{{Job: "prepare", Began: stamp(0), Until: stamp(time.Hour - test.ended)}}
		m := emit.NewMetrics("test")
		m.Collect(now)
		if got := len(m.Jobs()); got != test.want {
			t.Errorf("%v after its end: got %d jobs, want %d", test.ended, got, test.want)
		}
	}
}
