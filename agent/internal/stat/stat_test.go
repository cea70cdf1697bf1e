package stat

import (
	"math"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

func stamp(after time.Duration) sample.Stamp { return sample.Stamp{Mono: time.Hour + after} }

// host is a reading of pressure and cores.
func host(after time.Duration, some, full time.Duration, cores ...sample.Core) *sample.Snapshot {
	return &sample.Snapshot{
		Cores: sample.Sample{At: stamp(after), Cores: cores},
		Pressures: sample.Sample{At: stamp(after), Pressures: []sample.Pressure{
			{Scope: "/a", Resource: sample.IO, Some: time.Minute},
			{Resource: sample.CPU, Some: time.Minute},
			{Resource: sample.IO, Some: some, Full: full},
		}},
	}
}

func TestHost(t *testing.T) {
	a := host(0, time.Second, 0, sample.Core{Name: "cpu0", User: time.Hour}, sample.Core{Name: "cpu1"},
		sample.Core{Name: "cpu2", Idle: time.Second})
	b := host(2*time.Second, 2*time.Second, 500*ms,
		sample.Core{Name: "cpu0", User: time.Hour + 100*ms},
		sample.Core{Name: "cpu1", User: time.Second, Steal: time.Minute},
		sample.Core{Name: "cpu2", SoftIRQ: time.Second},
		sample.Core{Name: "cpu3", User: time.Hour}) // came online meanwhile
	got := Between(a, b)
	if p := got.Pressure; p == nil || *p != (Pressure{Some: 0.5, Full: 0.25}) {
		t.Errorf("got %+v, want 0.5 and 0.25", p)
	}
	if c := got.BusiestCore; c == nil || *c != (Core{Name: "cpu1", Utilization: 0.5}) {
		t.Errorf("got %+v, want cpu1 at 0.5", c)
	}
	if got.Interval != 2*time.Second || got.At != b.Cores.At { // without a disk
		t.Errorf("got %+v, want the interval of the cores", got)
	}
	if got := Between(b, a); got.Pressure != nil || got.BusiestCore != nil {
		t.Errorf("backwards: got %+v, want no rates", got)
	}
	if got := Between(a, host(time.Second, 0, 0, sample.Core{Name: "cpu9"})); got.Pressure != nil ||
		got.BusiestCore != nil {
		t.Errorf("restarted: got %+v, want no rates", got)
	}
	if got := Between(a,
		host(time.Second, 9*time.Second, 0, sample.Core{Name: "cpu0", User: 2 * time.Hour})); got.Pressure.Some != 1 ||
		got.BusiestCore.Utilization != 1 {
		t.Errorf("more than the interval: got %+v, %+v; want 1", got.Pressure, got.BusiestCore)
	}
	if got := Between(&sample.Snapshot{},
		&sample.Snapshot{}); got.Pressure != nil || got.BusiestCore != nil || got.Disks != nil ||
		got.GPUs != nil {
		t.Errorf("empty readings: got %+v, want no rates", got)
	}
}

func gpuAt(after time.Duration, gpus ...sample.GPU) *sample.Snapshot {
	return &sample.Snapshot{GPUs: sample.Sample{At: stamp(after), GPUs: gpus}}
}

func TestGPU(t *testing.T) {
	a := sample.GPU{
		ID:             "GPU-1",
		Name:           "NVIDIA H200",
		Index:          3,
		Busy:           time.Minute,
		MemoryUsed:     1 << 30,
		MemoryTotal:    2 << 30,
		Temperature:    54,
		Power:          700,
		Energy:         1000,
		LinkWidth:      16,
		LinkGeneration: 5,
		Has:            sample.HasMemory | sample.HasTemperature | sample.HasPower | sample.HasEnergy | sample.HasLink,
	}
	b := a
	b.Busy += 800 * ms
	b.Energy += 250
	b.MemoryUsed = 0 // zero is a value, not an absence
	g := Between(gpuAt(0, a), gpuAt(time.Second, b)).GPUs[0]
	if !is(g.Utilization, 0.8) || !is(g.Power, 700) || !is(g.Temperature, 54) ||
		*g.MemoryUsed != 0 || *g.MemoryTotal != 2<<30 ||
		*g.LinkWidth != 16 || *g.LinkGeneration != 5 || g.Index != 3 ||
		g.Status != sample.GPUWorks {
		t.Errorf("got %+v, want the values of the later reading", g)
	}
	bare := b
	bare.Has = 0
	g = Between(gpuAt(0, a), gpuAt(time.Second, bare)).GPUs[0]
	if g.MemoryUsed != nil || g.MemoryTotal != nil || g.Temperature != nil ||
		g.Power != nil || g.LinkWidth != nil || g.LinkGeneration != nil ||
		!is(g.Utilization, 0.8) {
		t.Errorf("without optional values: got %+v, want them nil", g)
	}
}

func TestGPUWithoutInterval(t *testing.T) {
	a := sample.GPU{
		ID:     "GPU-1",
		Name:   "NVIDIA H200",
		Busy:   time.Minute,
		Power:  100,
		Energy: 10,
		Has:    sample.HasPower | sample.HasEnergy,
	}
	reloaded := a
	reloaded.Busy, reloaded.Energy = 0, 0
	hung, lost, other := a, a, a
	hung.Status, lost.Status, other.ID = sample.GPUHung, sample.GPULost, "GPU-2"
	for name, test := range map[string]struct {
		before sample.GPU
		after  *sample.Snapshot
	}{
		"nothing new":        {a, gpuAt(0, a)},
		"driver reloaded":    {a, gpuAt(time.Second, reloaded)},
		"not there before":   {other, gpuAt(time.Second, a)},
		"it hung before":     {hung, gpuAt(time.Second, a)},
		"it was lost before": {lost, gpuAt(time.Second, a)},
	} {
		if g := Between(gpuAt(0, test.before), test.after).GPUs[0]; g.Utilization != nil || !is(g.Power, 100) {
			t.Errorf("%s: got %+v, want power 100 and no utilization", name, g)
		}
	}
	for _, broken := range []sample.GPU{hung, lost} {
		g := Between(gpuAt(0, a), gpuAt(time.Second, broken)).GPUs[0]
		if g != (GPU{ID: a.ID, Name: a.Name, Status: broken.Status}) {
			t.Errorf("%s: got %+v, want id, name and status", broken.Status, g)
		}
	}
}

func TestImplausibleGPU(t *testing.T) {
	a := sample.GPU{ID: "GPU-1", Has: sample.HasTemperature | sample.HasPower | sample.HasEnergy}
	b := a
	b.Busy, b.Temperature, b.Power, b.Energy = time.Hour, math.NaN(), math.Inf(1), math.Inf(1)
	if g := Between(gpuAt(0, a), gpuAt(time.Second, b)).GPUs[0]; !is(g.Utilization, 1) || g.Temperature != nil ||
		g.Power != nil {
		t.Errorf("got %+v, want utilization 1 alone", g)
	}
}
