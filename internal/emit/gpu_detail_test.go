package emit_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/semconv"
)

// everything returns a value for each quantity, no two the same.
func everything() (v sample.GPUValues) {
	for q := range sample.GPUQuantities {
		v.Set(q, float64(q)+1)
	}
	v.Drop(sample.GPURepairPending)
	v.Drop(sample.GPURepairFailed)
	return v
}

// card returns a GPU with all readings.
func card(id, parent string) sample.GPU {
	return sample.GPU{
		ID: id, Name: "NVIDIA H200", Driver: "570.86.15", Parent: parent, Busy: time.Minute,
		MemoryUsed: 1 << 30, MemoryTotal: 141 << 30, Temperature: 40, Power: 300, Energy: 1e6,
		LinkWidth: 16, LinkGeneration: 5, LinkWidthMax: 16, LinkGenerationMax: 5,
		Has: sample.HasMemory | sample.HasTemperature | sample.HasPower | sample.HasEnergy |
			sample.HasLink | sample.HasLinkMax,
	}
}

// cards returns a snapshot of GPUs, read d after boot and collected half a second later.
func cards(d time.Duration, gpus []sample.GPU, details ...sample.GPUDetail) sample.Snapshot {
	for i := range details {
		details[i].At = d - 500*ms
	}
	return sample.Snapshot{Boot: booted, GPUs: sample.Sample{At: at(d), GPUs: gpus, GPUDetails: details}}
}

func only(values map[sample.GPUQuantity]float64) (v sample.GPUValues) {
	for q, value := range values {
		v.Set(q, value)
	}
	return v
}

// wholeGPU returns a GPU and a slice of it, with details and the cost of the driver.
func wholeGPU(after time.Duration) sample.Snapshot {
	s := cards(after, []sample.GPU{card("GPU-1", ""), card("MIG-1", "GPU-1")},
		sample.GPUDetail{GPU: "MIG-1", Values: everything()},
		sample.GPUDetail{GPU: "GPU-1", Values: everything(), XIDs: []sample.XID{{Code: 31, Count: 2}, {Code: 79, Count: 1}}})
	for i := range s.GPUs.GPUs {
		s.GPUs.GPUs[i].Busy = after / 2
	}
	s.GPUs.DriverUse = &sample.DriverUse{
		Calls: []sample.DriverCall{
			{Name: "nvmlDeviceGetFieldValues", Count: 40, Time: 20 * ms, Longest: 2 * ms},
			{Name: "nvmlDeviceGetSamples", Count: 10, Time: ms, Longest: ms / 2},
		},
		Fields:  []sample.DriverCall{{Name: "NVML_FI_DEV_ENERGY", Count: 40, Time: 5 * ms, Longest: ms}},
		Dropped: 3, Sessions: 2,
	}
	return s
}

// TestGPUDetails has a GPU with all readings, and GPUs with few: unknown values are absent, not zero.
func TestGPUDetails(t *testing.T) {
	s := wholeGPU(time.Hour)
	s.GPUs.GPUs[1] = sample.GPU{ID: "MIG-1", Parent: "GPU-1", Has: sample.LacksBusy}
	s.GPUs.GPUDetails[0].Values = only(map[sample.GPUQuantity]float64{sample.GPUSMActive: 0})
	s.GPUs.GPUs = append(s.GPUs.GPUs, sample.GPU{ID: "silent"}, sample.GPU{ID: "lost", Status: sample.GPULost})
	s.GPUs.GPUDetails = append(s.GPUs.GPUDetails, sample.GPUDetail{GPU: "lost", At: s.GPUs.At.Mono, Values: everything()},
		sample.GPUDetail{GPU: "left out", At: s.GPUs.At.Mono, Values: everything()})
	checkText(t, "gpu", metricsText(emit.NewMetrics("1.2.3").Collect(s)))
}

// Every quantity has one place, and no two share one; the repairs are states.
func TestGPUQuantitiesHavePlaces(t *testing.T) {
	found := map[string]string{}
	for q := range sample.GPUQuantities {
		values := only(map[sample.GPUQuantity]float64{q: 1})
		text := metricsText(emit.NewMetrics("").Collect(cards(time.Hour, []sample.GPU{{ID: "GPU-1", Has: sample.LacksBusy}},
			sample.GPUDetail{GPU: "GPU-1", Values: values})))
		_, rest, _ := strings.Cut(text, "\nhw.status ")
		_, rest, ok := strings.Cut(rest, "\n\n")
		if repair := q == sample.GPURepairPending || q == sample.GPURepairFailed; ok == repair {
			t.Errorf("%v: got %s, want a metric of its own only for other quantities than repairs", q, text)
			continue
		}
		if ok && (found[rest] != "" || strings.Count(rest, "\n") != 2) {
			t.Errorf("%v and %s: %s", q, found[rest], rest)
		}
		found[rest] = q.String()
	}
}

func TestGPUStates(t *testing.T) {
	pending, failed := map[sample.GPUQuantity]float64{sample.GPURepairPending: 1},
		map[sample.GPUQuantity]float64{sample.GPURepairPending: 1, sample.GPURepairFailed: 1}
	for _, test := range []struct {
		status sample.GPUStatus
		values map[sample.GPUQuantity]float64
		want   string
	}{
		{"", nil, "ok"},
		{"", map[sample.GPUQuantity]float64{sample.GPURepairPending: 0, sample.GPURepairFailed: 0}, "ok"},
		{"", pending, "degraded"},
		{"", failed, "predicted_failure"},
		{sample.GPUHung, failed, "degraded"},
		{sample.GPULost, failed, "failed"},
	} {
		s := cards(time.Hour, []sample.GPU{{ID: "GPU-1", Status: test.status}},
			sample.GPUDetail{GPU: "GPU-1", Values: only(test.values)})
		text := metricsText(emit.NewMetrics("").Collect(s))
		if strings.Count(text, "\n  1 {") != 1 || !strings.Contains(text, fmt.Sprintf("\n  1 {hw.id=\"GPU-1\", hw.state=%q",
			test.want)) {
			t.Errorf("%+v: got %s, want only this state", test, text)
		}
	}
}

// A GPU that gives no answer, is released or sleeps has no state, rather than a good or a bad one.
func TestUnknownGPUHasNoState(t *testing.T) {
	for _, status := range []sample.GPUStatus{sample.GPUUnknown, sample.GPUReleased, sample.GPUAsleep} {
		s := cards(time.Hour, []sample.GPU{{ID: "GPU-1", Status: status}},
			sample.GPUDetail{GPU: "GPU-1", Values: everything()})
		if text := metricsText(emit.NewMetrics("").Collect(s)); strings.Contains(text, "hw.") {
			t.Errorf("%s: got %s, want nothing of the GPU", status, text)
		}
	}
}

// A counter that begins again does so by itself, and is found to have even if the GPU was away meanwhile.
func TestGPUCountersBeginAgain(t *testing.T) {
	m := emit.NewMetrics("")
	gpu, away := []sample.GPU{{ID: "GPU-1"}}, []sample.GPU{{ID: "GPU-1", Status: sample.GPULost}}
	look := func(after time.Duration, gpus []sample.GPU, power, thermal float64) map[string]time.Time {
		detail := sample.GPUDetail{GPU: "GPU-1", Values: only(map[sample.GPUQuantity]float64{
			sample.GPUThrottledPower: power, sample.GPUThrottledThermal: thermal,
		})}
		starts := map[string]time.Time{}
		for _, metric := range m.Collect(cards(after, gpus, detail)).Metrics {
			if metric.Name == "stallspan.gpu.clock.throttle.time" {
				for _, p := range metric.Data.(metricdata.Sum[float64]).DataPoints {
					reason, _ := p.Attributes.Value(semconv.GPUClockThrottleReasonKey)
					starts[reason.AsString()] = p.StartTime
				}
			}
		}
		return starts
	}
	look(time.Hour, gpu, 100, 100)
	if got := look(time.Hour+10*time.Second, gpu, 5, 100); !got["power"].Equal(booted.Add(time.Hour-500*ms)) ||
		!got["thermal"].Equal(booted) {
		t.Errorf("after one began again: %v", got)
	}
	if got := look(time.Hour+20*time.Second, away, 0, 0); len(got) != 0 {
		t.Errorf("a lost GPU has %v", got)
	}
	got := look(time.Hour+30*time.Second, gpu, 6, 1)
	if !got["power"].Equal(booted.Add(time.Hour-500*ms)) || !got["thermal"].Equal(booted.Add(time.Hour+9500*ms)) {
		t.Errorf("after it came back: %v", got)
	}
}

// However many codes a GPU reports, its series are bounded, none of them ever changes its meaning, and nothing is lost.
func TestXIDsAreBounded(t *testing.T) {
	m := emit.NewMetrics("")
	counts := map[string]int64{}
	var all []sample.XID
	for round := range 3 {
		for i := range 40 {
			all = append([]sample.XID{{Code: 1000 - 40*round - i, Count: 0}}, all...)
		}
		sum := int64(0)
		for i := range all {
			all[i].Count++
			sum += int64(all[i].Count)
		}
		now := time.Hour + time.Duration(round)*time.Second
		for _, metric := range m.Collect(cards(now, []sample.GPU{{ID: "GPU-1"}},
			sample.GPUDetail{GPU: "GPU-1", XIDs: all})).Metrics {
			if metric.Name != "hw.errors" {
				continue
			}
			points := metric.Data.(metricdata.Sum[int64]).DataPoints
			if most := min(len(all), 64) + min(1, max(0, len(all)-64)); len(points) != most {
				t.Errorf("%d series of %d codes, want %d", len(points), len(all), most)
			}
			for _, p := range points {
				kind, _ := p.Attributes.Value(semconv.ErrorTypeKey)
				if p.Value < counts[kind.AsString()] || !p.StartTime.Equal(booted) {
					t.Errorf("%s went from %d to %d since %v", kind.AsString(), counts[kind.AsString()], p.Value, p.StartTime)
				}
				counts[kind.AsString()] = p.Value
				sum -= p.Value
			}
		}
		if sum != 0 {
			t.Errorf("%d errors are in no series", sum)
		}
	}
	if counts["xid_1000"] != 3 || counts["xid_other"] == 0 {
		t.Errorf("XID series: got %v, want 3 of code 1000 and some others", counts)
	}
}

// The XID error of a lost GPU is emitted while the GPU is lost, with the time of the newest reading.
func TestErrorsOfALostGPU(t *testing.T) {
	for _, status := range []sample.GPUStatus{sample.GPULost, sample.GPUHung} {
		s := cards(time.Hour, []sample.GPU{{ID: "GPU-1", Status: status}},
			sample.GPUDetail{GPU: "GPU-1", Values: everything(), XIDs: []sample.XID{{Code: 79, Count: 1}}})
		s.GPUs.At.Mono = time.Minute
		scope := emit.NewMetrics("").Collect(s)
		if len(scope.Metrics) != 2 { // hw.status, and the errors
			t.Fatalf("%s: got %s, want hw.status and hw.errors", status, metricsText(scope))
		}
		points := scope.Metrics[1].Data.(metricdata.Sum[int64]).DataPoints
		kind, _ := points[0].Attributes.Value(semconv.ErrorTypeKey)
		if len(points) != 1 || kind.AsString() != "xid_79" || points[0].Value != 1 || !points[0].Time.Equal(s.GPUs.At.Wall) ||
			!points[0].StartTime.Equal(booted.Add(59*time.Minute)) {
			t.Errorf("%s: got %+v, want one XID 79 at the newest reading", status, points)
		}
	}
}

// Busy time begins with the program, whenever the machine did, and does not begin again because the GPU was away.
func TestBusyTimeBeginsWithTheProgram(t *testing.T) {
	m := emit.NewMetrics("")
	for i, status := range []sample.GPUStatus{sample.GPUWorks, sample.GPULost, sample.GPUWorks} {
		s := cards(time.Hour+time.Duration(i)*10*time.Second,
			[]sample.GPU{{ID: "GPU-1", Busy: time.Duration(i) * time.Second, Status: status}})
		s.GPUs.At.Mono -= 59 * time.Minute
		scope := m.Collect(s)
		if status != sample.GPUWorks {
			continue
		}
		if v, start := value(t, scope, "stallspan.gpu.busy.time", `hw.id="GPU-1"`); v != float64(i) ||
			!start.Equal(booted.Add(59*time.Minute)) {
			t.Errorf("%v since %v", v, start)
		}
	}
}

// Counters of this program start with the program, also for a hung GPU.
func TestDriverUse(t *testing.T) {
	s := wholeGPU(time.Hour)
	s.GPUs.At.Mono = time.Minute
	for i := range s.GPUs.GPUs {
		s.GPUs.GPUs[i].Status = sample.GPUHung
	}
	scope := emit.NewMetrics("").Collect(s)
	for _, m := range scope.Metrics {
		if m.Name != semconv.NVMLCallDuration.Name {
			continue
		}
		for _, p := range m.Data.(metricdata.Histogram[float64]).DataPoints {
			function, _ := p.Attributes.Value(semconv.NVMLFunctionKey)
			if function.AsString() != "nvmlDeviceGetFieldValues" {
				continue
			}
			if p.Sum != 0.02 || !p.StartTime.Equal(booted.Add(59*time.Minute)) {
				t.Errorf("%v since %v, want 0.02 since the program began", p.Sum, p.StartTime)
			}
			return
		}
	}
	t.Error("no calls of nvmlDeviceGetFieldValues")
}

// No value of a driver's makes a point that JSON or a counter cannot hold.
func TestGPUGarbage(t *testing.T) {
	values := only(map[sample.GPUQuantity]float64{
		sample.GPUFan: math.NaN(), sample.GPUPowerLimit: math.Inf(1), sample.GPUPCIeSent: -1,
		sample.GPUErrorsCorrected: 1e300,
		sample.GPUPCIeReplays:     math.NaN(),
	})
	text := metricsText(emit.NewMetrics("").Collect(cards(time.Hour, []sample.GPU{{ID: "GPU-1"}},
		sample.GPUDetail{GPU: "GPU-1", Values: values})))
	for _, want := range []string{"hw.fan", "power.limit", "NaN", "Inf", "pcie_replay", "\n  -"} {
		if strings.Contains(text, want) {
			t.Errorf("there is %s: %s", want, text)
		}
	}
	if !strings.Contains(text, fmt.Sprintf("\n  %d {error.type=\"corrected\"", int64(math.MaxInt64))) ||
		!strings.Contains(text, "\nhw.gpu.io [By] sum, monotonic true\n  0 {") {
		t.Errorf("got %s, want the largest int64 and 0", text)
	}
}

// What a collection allocates depends on how many metrics there are, not on how many GPUs.
func TestGPUsAllocateNothing(t *testing.T) {
	allocations := func(gpus int) float64 {
		s := cards(time.Hour, nil)
		for i := range gpus {
			id := fmt.Sprint("GPU-", i)
			s.GPUs.GPUs = append(s.GPUs.GPUs, card(id, ""))
			s.GPUs.GPUDetails = append(s.GPUs.GPUDetails, sample.GPUDetail{GPU: id, Values: everything(),
				XIDs: []sample.XID{{Code: 79, Count: 1}}})
		}
		m := emit.NewMetrics("")
		return testing.AllocsPerRun(10, func() { m.Collect(s) })
	}
	if few, many := allocations(1), allocations(16); many > few+1 {
		t.Errorf("%v allocations of one GPU, %v of 16", few, many)
	}
}
