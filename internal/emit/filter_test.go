package emit_test

import (
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/sample"
)

// TestLeftOutOfTheSnapshot leaves devices out of every snapshot. The metrics are then those of all devices without the
// points of these: nothing reports their absence, and no other point changes.
func TestLeftOutOfTheSnapshot(t *testing.T) {
	disks, gpus := []string{"usb", "loop0"}, []string{"GPU-2"}
	first, second := snapshots()
	second.GPUs.GPUProcesses = []sample.GPUProcess{{GPU: "GPU-1", PID: 42, Has: true}, {GPU: "GPU-2", PID: 43, Has: true}}
	for _, id := range []string{"GPU-1", "GPU-2"} {
		second.GPUs.GPUDetails = append(second.GPUs.GPUDetails,
			sample.GPUDetail{GPU: id, At: second.GPUs.At.Mono, Values: everything()})
	}
	second.GPUs.DriverUse = &sample.DriverUse{Sessions: 1}
	third := second.Clone() // usb and GPU-2 are gone, vda's counters have begun again
	for _, s := range []*sample.Sample{&third.Disks, &third.Pressures, &third.Cores, &third.Jobs, &third.GPUs} {
		s.At = at(time.Hour + 20*time.Second)
	}
	third.Disks.Disks = []sample.Disk{{Name: "vda", ReadIOs: 1}}
	third.GPUs.GPUs[1].Status = sample.GPULost
	fourth := second.Clone() // they are back
	for _, s := range []*sample.Sample{&fourth.Disks, &fourth.Pressures, &fourth.Cores, &fourth.Jobs, &fourth.GPUs} {
		s.At = at(time.Hour + 30*time.Second)
	}
	all, some := emit.NewMetrics(""), emit.NewMetrics("")
	for i, s := range []sample.Snapshot{first, second, third, fourth} {
		filtered := s.Clone()
		filtered.Disks.Disks = slices.DeleteFunc(filtered.Disks.Disks,
			func(d sample.Disk) bool { return slices.Contains(disks, d.Name) })
		filtered.GPUs.GPUs = slices.DeleteFunc(filtered.GPUs.GPUs,
			func(g sample.GPU) bool { return slices.Contains(gpus, g.ID) })
		want, got := all.Collect(s.Clone()), some.Collect(filtered)
		removed := 0
		for k := range want.Metrics {
			removed += without(&want.Metrics[k], append(slices.Clone(disks), gpus...))
		}
		want.Metrics = slices.DeleteFunc(want.Metrics, func(m metricdata.Metrics) bool { return size(m) == 0 })
		if removed == 0 {
			t.Errorf("collection %d had no point of the devices that are left out", i)
		}
		if want, got := metricsText(want), metricsText(got); want != got {
			t.Errorf("collection %d: without the devices there is\n%s\nwant\n%s", i, got, want)
		}
	}
}

// without removes the points that have one of these names among their attributes' values.
func without(m *metricdata.Metrics, names []string) (removed int) {
	before := size(*m)
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		data.DataPoints = others(data.DataPoints, names)
		m.Data = data
	case metricdata.Sum[float64]:
		data.DataPoints = others(data.DataPoints, names)
		m.Data = data
	case metricdata.Gauge[int64]:
		data.DataPoints = others(data.DataPoints, names)
		m.Data = data
	case metricdata.Gauge[float64]:
		data.DataPoints = others(data.DataPoints, names)
		m.Data = data
	}
	return before - size(*m)
}

func others[N int64 | float64](points []metricdata.DataPoint[N], names []string) []metricdata.DataPoint[N] {
	return slices.DeleteFunc(points, func(p metricdata.DataPoint[N]) bool {
		for _, kv := range p.Attributes.ToSlice() {
			if slices.Contains(names, kv.Value.AsString()) {
				return true
			}
		}
		return false
	})
}

func size(m metricdata.Metrics) int {
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		return len(data.DataPoints)
	case metricdata.Sum[float64]:
		return len(data.DataPoints)
	case metricdata.Gauge[int64]:
		return len(data.DataPoints)
	case metricdata.Gauge[float64]:
		return len(data.DataPoints)
	}
	return 1
}
