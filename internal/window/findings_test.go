package window

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/sample"
)

func means(values map[history.Detail]float64) (m history.Means) {
	for d, v := range values {
		m.Set(d, v)
	}
	return m
}

// epochOf is the report of an epoch of ten seconds on these GPUs.
func epochOf(uses ...GPUUse) *Report {
	r := &Report{Window: Window{Kind: Epoch, End: sample.Stamp{Mono: 10 * time.Second}}, Facts: Facts{Uses: uses}}
	for _, u := range uses {
		r.GPUIDs = append(r.GPUIDs, u.ID)
	}
	return r
}

// findings adds the findings about GPUs, with an empty history.
func findings(t *testing.T, r *Report) {
	t.Helper()
	r.Findings = (&view{&r.Window, newHistory(t), &Machine{}}).gpuFindings(r)
}

func newHistory(t *testing.T) *history.History {
	t.Helper()
	h, err := history.New(history.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestTensorIdle(t *testing.T) {
	of := &FindingThresholds
	use := func(busy, tensor float64, more map[history.Detail]float64) GPUUse {
		u := GPUUse{ID: "GPU-1", Busy: busy, Means: means(more)}
		u.Means.Set(history.TensorActive, tensor)
		return u
	}
	const just = 1e-6
	for i, c := range []struct {
		uses []GPUUse
		want *IdleTensorCores // without DRAM and SM
	}{
		{[]GPUUse{use(0.95, 0.11, nil)}, &IdleTensorCores{GPUs: 1, Busy: 0.95, Tensor: 0.11}},
		{[]GPUUse{use(of.TensorBusy, of.Tensor-just, nil)}, &IdleTensorCores{GPUs: 1, Busy: of.TensorBusy, Tensor: of.Tensor - just}},
		{[]GPUUse{use(of.TensorBusy-just, of.Tensor-just, nil)}, nil},
		{[]GPUUse{use(of.TensorBusy, of.Tensor, nil)}, nil},
		{[]GPUUse{use(0.95, 0.02, map[history.Detail]float64{history.DRAMActive: of.DRAM, history.SMActive: 0.1})},
			&IdleTensorCores{GPUs: 1, Busy: 0.95, Tensor: 0.02, MemoryBound: true, SmallKernels: true}},
		{[]GPUUse{use(0.95, 0.02, map[history.Detail]float64{history.DRAMActive: of.DRAM - just, history.SMActive: of.SM - just})},
			&IdleTensorCores{GPUs: 1, Busy: 0.95, Tensor: 0.02, SmallKernels: true}},
		{[]GPUUse{use(0.95, 0.02, map[history.Detail]float64{history.DRAMActive: of.DRAM - just, history.SMActive: of.SM})},
			&IdleTensorCores{GPUs: 1, Busy: 0.95, Tensor: 0.02}},
		// no tensor cores reported
		{[]GPUUse{{ID: "GPU-1", Busy: 1, Means: means(map[history.Detail]float64{history.SMActive: 0.1})}}, nil},
		{[]GPUUse{use(1, 0.1, nil), {ID: "GPU-2", Busy: 0}, use(0.9, 0, nil)}, &IdleTensorCores{GPUs: 2, Busy: 0.95, Tensor: 0.05}},
	} {
		for _, kind := range []Kind{Epoch, Custom, ModelLoad, Checkpoint} {
			r := epochOf(c.uses...)
			r.Kind = kind
			findings(t, r)
			got, found := r.Finding(TensorIdle).(IdleTensorCores)
			got.DRAM, got.SM = 0, 0
			want := c.want
			if kind != Epoch && kind != Custom {
				want = nil
			}
			if found != (want != nil) || found && got != *want {
				t.Errorf("%d, %s: %+v, want %+v", i, kind, r.Findings, want)
			}
		}
	}
	for name, change := range map[string]func(*Report){
		"short":    func(r *Report) { r.End.Mono = of.MinDuration - 1 },
		"lost GPU": func(r *Report) { r.lack(Missing{Reason: GPULost, Device: "GPU-1"}) },
		"gap":      func(r *Report) { r.lack(Missing{Reason: ReadingGap}) },
	} {
		r := epochOf(use(1, 0, nil))
		change(r)
		if findings(t, r); len(r.Findings) != 0 {
			t.Errorf("%s: %+v, want no finding", name, r.Findings)
		}
	}
}

func TestThrottled(t *testing.T) {
	of := &FindingThresholds
	const just = 1e-6
	limits := history.GPULimits{Power: 700, SlowdownAt: 90, Clock: 1980e6}
	none := Throttling{}
	for i, c := range []struct {
		means  map[history.Detail]float64
		limits history.GPULimits
		want   Throttling // without GPU
	}{
		{map[history.Detail]float64{history.ThrottledThermal: 0.34}, limits, Throttling{nil, history.ThrottledThermal, 0.34}},
		{map[history.Detail]float64{history.ThrottledThermal: of.Throttled}, history.GPULimits{}, Throttling{nil, history.ThrottledThermal, of.Throttled}},
		{map[history.Detail]float64{history.ThrottledThermal: of.Throttled - just}, limits, none},
		{map[history.Detail]float64{history.ThrottledHWThermal: 0.2, history.ThrottledThermal: 0.1}, limits, Throttling{nil, history.ThrottledHWThermal, 0.2}},
		{map[history.Detail]float64{history.ThrottledPowerBrake: of.Throttled}, limits, Throttling{nil, history.ThrottledPowerBrake, of.Throttled}},
		{map[history.Detail]float64{history.ThrottledSyncBoost: of.Throttled}, limits, Throttling{nil, history.ThrottledSyncBoost, of.Throttled}},
		{map[history.Detail]float64{history.ThrottledBoard: of.Throttled}, limits, Throttling{nil, history.ThrottledBoard, of.Throttled}},
		{map[history.Detail]float64{history.ThrottledReliability: 1}, limits, none},
		{map[history.Detail]float64{history.ThrottledPower: 0.8, history.SMClock: 1410e6}, limits, Throttling{nil, history.ThrottledPower, 0.8}},
		{map[history.Detail]float64{history.ThrottledPower: of.PowerCap, history.SMClock: of.PowerClock * 1980e6}, limits,
			Throttling{nil, history.ThrottledPower, of.PowerCap}},
		{map[history.Detail]float64{history.ThrottledPower: of.PowerCap - just, history.SMClock: 1e9}, limits, none},
		// without cost
		{map[history.Detail]float64{history.ThrottledPower: 1, history.SMClock: of.PowerClock*1980e6 + 1}, limits, none},
		{map[history.Detail]float64{history.ThrottledPower: of.PowerBlind}, limits, Throttling{nil, history.ThrottledPower, of.PowerBlind}},
		{map[history.Detail]float64{history.ThrottledPower: of.PowerBlind - just}, limits, none},
		{map[history.Detail]float64{history.ThrottledPower: 1, history.SMClock: 1e9, history.ThrottledThermal: 0.5}, limits,
			Throttling{nil, history.ThrottledPower, 1}},
	} {
		r := epochOf(GPUUse{ID: "GPU-1", Busy: 0.9, Means: means(c.means), Limits: c.limits})
		findings(t, r)
		got, _ := r.Finding(Throttled).(Throttling)
		got.GPU = nil
		if got != c.want {
			t.Errorf("%d: %+v, want %+v", i, got, c.want)
		}
	}
	hot := means(map[history.Detail]float64{history.ThrottledThermal: 0.5})
	r := epochOf(GPUUse{ID: "GPU-1"}, GPUUse{ID: "GPU-2", Means: hot})
	findings(t, r)
	if got, _ := r.Finding(Throttled).(Throttling); len(r.Findings) != 1 || got.GPU != &r.Uses[1] {
		t.Errorf("%+v, want one finding, about GPU-2", r.Findings)
	}
}

// heats plays a GPU with temperature, power and work that change linearly within so many seconds.
type heats struct {
	seconds             int
	cold, hot           float64
	low, high           float64
	slow, fast          float64 // activity of the SMs
	clockFrom, clockTo  float64
	slowdownAt, thermal float64
}

func (c *heats) report(t *testing.T) *Report {
	t.Helper()
	h := newHistory(t)
	at := func(from, to float64, i int) float64 { return from + (to-from)*float64(i)/float64(c.seconds) }
	for i := range c.seconds + 1 {
		d := sample.GPUDetail{GPU: "GPU-1", At: time.Duration(i) * time.Second}
		d.Values.Set(sample.GPUSMActive, at(c.slow, c.fast, i))
		if c.clockFrom > 0 {
			d.Values.Set(sample.GPUClockSM, at(c.clockFrom, c.clockTo, i))
		}
		if c.slowdownAt > 0 {
			d.Values.Set(sample.GPUSlowdownAt, c.slowdownAt)
		}
		d.Values.Set(sample.GPUThrottledThermal, c.thermal*float64(i))
		s := &sample.Sample{At: sample.Stamp{Mono: d.At}, GPUDetails: []sample.GPUDetail{d}, GPUs: []sample.GPU{{
			ID: "GPU-1", Busy: d.At, Temperature: at(c.cold, c.hot, i), Power: at(c.low, c.high,
				i), Has: sample.HasTemperature | sample.HasPower}}}
		if err := h.Append(s); err != nil {
			t.Fatal(err)
		}
	}
	r := &Report{Facts: Facts{GPUIDs: []string{"GPU-1"}}, Window: Window{Kind: Epoch,
		End: sample.Stamp{Mono: time.Duration(c.seconds) * time.Second}}}
	v := &view{&r.Window, h, &Machine{}}
	r.Uses = v.uses(r.GPUIDs)
	r.Findings = v.gpuFindings(r)
	return r
}

func TestHeating(t *testing.T) {
	well := heats{seconds: 120, cold: 60, hot: 92, low: 400, high: 500, slow: 0.8, fast: 0.8, slowdownAt: 90}
	with := func(change func(*heats)) heats {
		c := well
		change(&c)
		return c
	}
	for i, c := range []struct {
		heats
		found bool
	}{
		{well, true}, // 64 to 88 C, 412 to 488 W
		{with(func(c *heats) { c.seconds = 60 }), true},
		{with(func(c *heats) { c.seconds = 59 }), false},
		{with(func(c *heats) { c.slowdownAt = 97 }), true},                        // near
		{with(func(c *heats) { c.slowdownAt = 99 }), false},                       // far
		{with(func(c *heats) { c.slowdownAt = 0 }), true},                         // 88 C are hot anyway
		{with(func(c *heats) { c.slowdownAt, c.cold, c.hot = 0, 60, 82 }), false}, // 79 C are not
		{with(func(c *heats) { c.cold = 85.5 }), false},                           // rose by 4.9
		{with(func(c *heats) { c.cold = 85 }), true},                              // by 5.25
		{with(func(c *heats) { c.high = 454 }), false},                            // by 9.96 %
		{with(func(c *heats) { c.high = 457 }), true},                             // by 10.5 %
		{with(func(c *heats) { c.fast = 0.82 }), true},                            // by 1.9 %
		{with(func(c *heats) { c.fast = 0.825 }), false},                          // by 2.3 %
		{with(func(c *heats) { c.fast = 0.9; c.clockFrom, c.clockTo = 2e9, 1.5e9 }), true},
		{with(func(c *heats) { c.clockFrom, c.clockTo = 1.5e9, 1.9e9 }), false},
		{with(func(c *heats) { c.thermal = 0.5 }), false}, // its counters show it
	} {
		r := c.report(t)
		got, found := r.Finding(Heating).(Overheating)
		if found != c.found {
			t.Errorf("%d: %+v: %+v, want a finding: %v", i, c.heats, r.Findings, c.found)
		}
		rounded := Overheating{got.GPU, math.Round(got.FirstTemperature), math.Round(got.LastTemperature),
			math.Round(got.FirstPower), math.Round(got.LastPower)}
		if want := (Overheating{&r.Uses[0], 64, 88, 413, 488}); i == 0 && rounded != want {
			t.Errorf("%+v, want %+v", rounded, want)
		}
		if c.thermal > 0 && r.Finding(Throttled) == nil {
			t.Errorf("%d: %+v, want %s", i, r.Findings, Throttled)
		}
	}
}

func TestMemoryGrows(t *testing.T) {
	const mib = 1 << 20
	for i, c := range []struct {
		epochs []float64 // MiB
		found  bool
	}{
		{[]float64{1000, 1310, 1620, 1930}, true},
		{[]float64{1000, 1310, 1620}, false},
		{[]float64{1000, 1064, 1128, 1192}, true},
		{[]float64{1000, 1064, 1127, 1191}, false}, // within the noise once
		{[]float64{1000, 1310, 1620, 1600, 1930, 2240}, false},
		{[]float64{500, 1310, 1300, 1600, 1930, 2240}, true},
		{[]float64{1000, 1800, 2200, 2400}, false}, // levels off: the last growth is 200, the mean 467
		{[]float64{1000, 1100, 1500, 2400}, true},
		{[]float64{2000, 2000, 2000, 2000, 2000}, false},
	} {
		var g Growth
		var r *Report
		for n, used := range c.epochs {
			r = epochOf(GPUUse{ID: "GPU-1", Means: means(map[history.Detail]float64{history.MemoryUsed: used * mib}),
				Limits: history.GPULimits{Memory: 80 << 30}})
			r.Run, r.Start.Mono = "train", time.Duration(n)*time.Second
			r.End.Mono += r.Start.Mono
			g.Learn(r)
			cut, load := *r, *r
			cut.Unfinished, load.Kind = true, ModelLoad
			g.Learn(&cut)
			g.Learn(&load)
			other := epochOf(GPUUse{ID: "GPU-1", Means: means(map[history.Detail]float64{history.MemoryUsed: 1})})
			other.Run = "other"
			g.Learn(other)
		}
		got, found := r.Finding(MemoryGrows).(MemoryGrowth)
		if found != c.found {
			t.Errorf("%d, %v: %+v, want a finding: %v", i, c.epochs, r.Findings, c.found)
		}
		if left := int(got.EpochsLeft); i == 0 && (got.PerEpoch != 310*mib || got.Epochs != 4 || left != 258) {
			t.Errorf("%v bytes an epoch over %d epochs, %d epochs left; want 310 MiB, 4 and 258", got.PerEpoch, got.Epochs, left)
		}
	}
	var g Growth
	for i := range 3 * maxRuns {
		r := epochOf(GPUUse{ID: "GPU-1", Means: means(map[history.Detail]float64{history.MemoryUsed: 1})})
		r.Run = fmt.Sprint(i)
		r.End.Mono += time.Duration(i)
		g.Learn(r)
	}
	if _, newest := g.runs[run{name: fmt.Sprint(3*maxRuns - 1)}]; len(g.runs) != maxRuns || !newest {
		t.Errorf("%d runs, the newest is known: %v; want %d with the newest", len(g.runs), newest, maxRuns)
	}
}

// TestMemoryGrowsSoonest: of several GPUs the finding is about the one that is full first.
func TestMemoryGrowsSoonest(t *testing.T) {
	var g Growth
	var r *Report
	for i := range 6 {
		use := func(id string, total uint64) GPUUse {
			used := means(map[history.Detail]float64{history.MemoryUsed: float64(i+1) * (1 << 30)})
			return GPUUse{ID: id, Means: used, Limits: history.GPULimits{Memory: total}}
		}
		slice := uint64(80 << 30)
		if i == 5 {
			slice = 13 << 29 // nearly full
		}
		r = epochOf(use("GPU-a", 80<<30), use("GPU-b", 24<<30), use("MIG-c", slice), GPUUse{ID: "GPU-3"})
		g.Learn(r)
		got, found := r.Finding(MemoryGrows).(MemoryGrowth)
		if want := []string{3: "GPU-b", 4: "GPU-b", 5: "MIG-c"}; found != (i >= 3) || found && got.GPU.ID != want[i] {
			t.Errorf("epoch %d: %+v, want %v", i, r.Findings, want)
		}
		if left := []int{3: 20, 4: 19, 5: 0}; found && int(got.EpochsLeft) != left[i] {
			t.Errorf("epoch %d: %v epochs left, want %d", i, got.EpochsLeft, left[i])
		}
	}
}

// TestFindingsAreDocumented compares the numbers of docs/verdicts.md with the code.
func TestFindingsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/verdicts.md")
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Join(strings.Fields(string(page)), " ") // a phrase may be broken over two lines
	f := FindingThresholds
	for _, text := range []string{
		fmt.Sprintf("| `%s` | busy >= %.2f and tensor cores < %.2f |", TensorIdle, f.TensorBusy, f.Tensor),
		fmt.Sprintf("memory at %.2f of its bandwidth or more", f.DRAM),
		fmt.Sprintf("SMs below %.2f", f.SM),
		fmt.Sprintf("| `%s` | clocks held down for %.2f of the window or more", Throttled, f.Throttled),
		fmt.Sprintf("by the power cap for %.2f, and the mean clock at most %.2f of the highest seen (%.2f if the clock is "+
			"unknown)",
			f.PowerCap, f.PowerClock, f.PowerBlind),
		fmt.Sprintf("| `%s` | in %s or more, from its first quarter to its last, at least %.0f degrees warmer and %.2f "+
			"more power, and at most %.2f more work",
			Heating, fmt.Sprintf("%.1f s", f.HeatingTime.Seconds()), f.HeatingDegree, f.HeatingPower, f.HeatingWork),
		fmt.Sprintf("within %.0f degrees of its slowdown limit, or at %.0f C if that limit is unknown", f.HeatingMargin,
			f.HeatingFrom),
		fmt.Sprintf("| `%s` | in %d epochs or more, each held at least %s more than the one before, the last one at least "+
			"%.2f of their mean growth",
			MemoryGrows, f.GrowthEpochs, fmt.Sprintf("%.0f MiB", f.Growth/(1<<20)), f.GrowthLast),
		fmt.Sprintf("| `%s` | the work of an epoch began after %.2f of it and %.0f s, with at most %.2f of the work of the rest "+
			"in each second before, and work in %.2f of the rest, and %.1f s",
			FirstBatchLate, f.FirstBatch, f.FirstBatchTime.Seconds(), f.FirstBatchWork, f.FirstBatchRest, f.FirstBatchLeast),
		fmt.Sprintf("shorter than %.0f s", f.MinDuration.Seconds()),
		fmt.Sprintf("| `%s` | the window is slow, `%s` or `%s`, and a disk", DiskFailing, StorageBound, Mixed),
		fmt.Sprintf("moved %g or more of all bytes on disks", minMovedShare),
	} {
		if !strings.Contains(words, text) {
			t.Errorf("docs/verdicts.md lacks: %s", text)
		}
	}
}
