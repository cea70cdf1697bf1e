package emit_test

import (
	"strconv"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/sample"
)

// Attribute sets are kept from one collection to the next, but not for ever and not for another device.
func TestSetsAreTheirDevices(t *testing.T) {
	m := emit.NewMetrics("")
	for round := range 5 {
		s := sample.Snapshot{Boot: booted}
		s.Jobs.At, s.GPUs.At = at(time.Hour+time.Duration(round)*time.Second), at(time.Hour+time.Duration(round)*time.Second)
		for i := range 700 {
			s.Jobs.Processes = append(s.Jobs.Processes, sample.Process{PID: 1 + 500*round + i, ReadBytes: 1, HasIO: true})
		}
		driver := strconv.Itoa(round / 2) // a GPU's driver is replaced while the machine runs
		s.GPUs.GPUs = []sample.GPU{{ID: "GPU-1", Name: "one", Driver: driver}}
		for _, metric := range m.Collect(s).Metrics {
			switch metric.Name {
			case "process.disk.io":
				for i, p := range metric.Data.(metricdata.Sum[int64]).DataPoints {
					if pid, _ := p.Attributes.Value("process.pid"); int(pid.AsInt64()) != 1+500*round+i/2 {
						t.Fatalf("round %d, point %d is of process %d", round, i, pid.AsInt64())
					}
				}
			case "stallspan.gpu.busy.time":
				point := metric.Data.(metricdata.Sum[float64]).DataPoints[0]
				if v, _ := point.Attributes.Value("hw.driver_version"); v.AsString() != driver {
					t.Errorf("driver in round %d: got %s, want %s", round, v.AsString(), driver)
				}
			}
		}
	}
}

// What was collected is its receiver's: the next collection does not write into it.
func TestCollectionsAreApart(t *testing.T) {
	m := emit.NewMetrics("")
	first, second := snapshots()
	m.Collect(first.Clone())
	scope := m.Collect(second.Clone())
	before := metricsText(scope)
	for range 2 {
		first, second = second, first
		m.Collect(second.Clone())
	}
	if after := metricsText(scope); after != before {
		t.Errorf("later collections changed\n%s\nto\n%s", before, after)
	}
}
