package window

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/sample"
)

// told are means.
func told(values map[history.Detail]float64) (m history.Means) {
	for d, v := range values {
		m.Set(d, v)
	}
	return m
}

// epochOf is the report of an epoch of ten seconds on these GPUs.
func epochOf(uses ...GPUUse) *Report {
	r := &Report{Window: Window{Kind: Epoch, End: sample.Stamp{Mono: 10 * time.Second}}, Uses: uses}
	for _, u := range uses {
		r.GPUIDs = append(r.GPUIDs, u.ID)
	}
	return r
}

func TestTensorIdle(t *testing.T) {
	h := newMachine(t, true)
	of := FindingThresholds
	use := func(busy, tensor float64, more map[history.Detail]float64) GPUUse {
		u := GPUUse{ID: "GPU-1", Busy: busy, Means: told(more)}
		u.Means.Set(history.TensorActive, tensor)
		return u
	}
	const just = 1e-6
	for i, c := range []struct {
		uses []GPUUse
		says string
		try  string
	}{
		{[]GPUUse{use(0.95, 0.11, nil)},
			"The GPU was busy 95 % of the time, but its tensor cores only 11 %: it computes in types or shapes that these do not take.", "bf16"},
		{[]GPUUse{use(of.TensorBusy, of.Tensor-just, nil)}, "tensor cores only 15 %", "bf16"},
		{[]GPUUse{use(of.TensorBusy-just, of.Tensor-just, nil)}, "", ""},
		{[]GPUUse{use(of.TensorBusy, of.Tensor, nil)}, "", ""},
		{[]GPUUse{use(0.95, 0.02, map[history.Detail]float64{history.DRAMActive: of.DRAM, history.SMActive: 0.1})},
			"tensor cores only 2 %; memory was at 50 % of its bandwidth, and is the limit.", "fewer bytes"},
		{[]GPUUse{use(0.95, 0.02, map[history.Detail]float64{history.DRAMActive: of.DRAM - just, history.SMActive: of.SM - just})},
			"tensor cores only 2 %, and its SMs 50 %: the kernels are too small to fill it.", "more work at a time"},
		{[]GPUUse{use(0.95, 0.02, map[history.Detail]float64{history.DRAMActive: of.DRAM - just, history.SMActive: of.SM})}, "types or shapes", "bf16"},
		{[]GPUUse{{ID: "GPU-1", Busy: 1, Means: told(map[history.Detail]float64{history.SMActive: 0.1})}}, "", ""}, // tells nothing of tensor cores
		{[]GPUUse{use(1, 0.1, nil), {ID: "GPU-2", Busy: 0}, use(0.9, 0, nil)},
			"The 2 GPUs were busy 95 % of the time, but their tensor cores only 5 %", "bf16"},
	} {
		for _, kind := range []Kind{Epoch, Custom, ModelLoad, Checkpoint} {
			r := epochOf(c.uses...)
			r.Kind = kind
			r.further(h.history)
			want := c.says != "" && (kind == Epoch || kind == Custom)
			f := r.Found(TensorIdle)
			if want != (f != nil) || want && (!strings.Contains(f.Text, c.says) || !strings.Contains(f.Remedy, c.try)) {
				t.Errorf("%d, %s: %+v, want %q", i, kind, r.Findings, c.says)
			}
		}
	}
	for _, less := range []func(*Report){
		func(r *Report) { r.End.Mono = of.Least - 1 },
		func(r *Report) { r.unread = "GPU-1" },
		func(r *Report) { r.gap = true },
	} {
		r := epochOf(use(1, 0, nil))
		less(r)
		if r.further(h.history); len(r.Findings) != 0 {
			t.Errorf("%+v", r.Findings)
		}
	}
}

func TestThrottled(t *testing.T) {
	h := newMachine(t, true)
	of := FindingThresholds
	const just = 1e-6
	limits := history.GPULimits{Power: 700, SlowdownAt: 90, Clock: 1980e6}
	for i, c := range []struct {
		means  map[history.Detail]float64
		limits history.GPULimits
		says   string
	}{
		{map[history.Detail]float64{history.ThrottledThermal: 0.34, history.Temperature: 88}, limits,
			"The GPU held its clocks down for 34 % of the time because it was too hot: 88 C in the mean, and it slows down at 90 C."},
		{map[history.Detail]float64{history.ThrottledThermal: of.Throttled}, history.GPULimits{}, "5 % of the time because it was too hot."},
		{map[history.Detail]float64{history.ThrottledThermal: of.Throttled - just}, limits, ""},
		{map[history.Detail]float64{history.ThrottledHWThermal: 0.2, history.ThrottledThermal: 0.1}, limits, "for its own protection"},
		{map[history.Detail]float64{history.ThrottledPowerBrake: of.Throttled}, limits, "power supply"},
		{map[history.Detail]float64{history.ThrottledSyncBoost: of.Throttled}, limits, "another GPU"},
		{map[history.Detail]float64{history.ThrottledBoard: of.Throttled}, limits, "board"},
		{map[history.Detail]float64{history.ThrottledReliability: 1}, limits, ""},
		{map[history.Detail]float64{history.ThrottledPower: 0.8, history.SMClock: 1410e6}, limits,
			"The GPU held its clocks down for 80 % of the time to stay below its power cap of 700 W: its SMs ran at 1410 MHz in the mean, and have run at 1980 MHz."},
		{map[history.Detail]float64{history.ThrottledPower: of.PowerCap, history.SMClock: of.PowerClock * 1980e6}, limits, "20 % of the time"},
		{map[history.Detail]float64{history.ThrottledPower: of.PowerCap - just, history.SMClock: 1e9}, limits, ""},
		{map[history.Detail]float64{history.ThrottledPower: 1, history.SMClock: of.PowerClock*1980e6 + 1}, limits, ""}, // and costs nothing
		{map[history.Detail]float64{history.ThrottledPower: of.PowerBlind}, limits, "power cap of 700 W."},
		{map[history.Detail]float64{history.ThrottledPower: of.PowerBlind - just}, limits, ""},
		{map[history.Detail]float64{history.ThrottledPower: 1, history.SMClock: 1e9, history.ThrottledThermal: 0.5}, limits, "power cap"},
	} {
		r := epochOf(GPUUse{ID: "GPU-1", Busy: 0.9, Means: told(c.means), Limits: c.limits})
		r.further(h.history)
		f := r.Found(Throttled)
		if (c.says != "") != (f != nil) || f != nil && (!strings.Contains(f.Text, c.says) || f.Remedy == "") {
			t.Errorf("%d: %+v, want %q", i, r.Findings, c.says)
		}
	}
	hot := told(map[history.Detail]float64{history.ThrottledThermal: 0.5})
	r := epochOf(GPUUse{ID: "GPU-1"}, GPUUse{ID: "GPU-2", Means: hot, Limits: history.GPULimits{Index: 1}})
	if r.further(h.history); len(r.Findings) != 1 || !strings.HasPrefix(r.Findings[0].Text, "GPU 1 held its clocks down for 50 %") {
		t.Errorf("%+v", r.Findings)
	}
}

// heats plays a GPU whose temperature, power and work go evenly from one value to another within so many seconds.
type heats struct {
	seconds             int
	cold, hot           float64
	low, high           float64
	slow, fast          float64 // activity of the SMs
	clockFrom, clockTo  float64
	slowdownAt, thermal float64
}

func (c *heats) report(t *testing.T) *Report {
	h := newMachine(t, false).history
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
			ID: "GPU-1", Busy: d.At, Temperature: at(c.cold, c.hot, i), Power: at(c.low, c.high, i), Has: sample.HasTemperature | sample.HasPower}}}
		if err := h.Append(s); err != nil {
			t.Fatal(err)
		}
	}
	r := &Report{GPUIDs: []string{"GPU-1"}, Window: Window{Kind: Epoch, End: sample.Stamp{Mono: time.Duration(c.seconds) * time.Second}}}
	r.uses(h, Machine{})
	r.further(h)
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
		{with(func(c *heats) { c.thermal = 0.5 }), false}, // its counters say so already
	} {
		r := c.report(t)
		f := r.Found(Heating)
		if c.found != (f != nil) {
			t.Errorf("%d: %+v, %+v", i, c, r.Findings)
		}
		if i == 0 && (f == nil || f.Text != "The GPU went from 64 to 88 C and from 413 to 488 W, and did no more for it; it slows down at 90 C.") {
			t.Errorf("%+v", r.Findings)
		}
		if c.thermal > 0 && r.Found(Throttled) == nil {
			t.Errorf("%d: %+v", i, r.Findings)
		}
	}
}

// TestFindingsInJSON: what is told is in the JSON as docs/report.md has it, and nothing else.
func TestFindingsInJSON(t *testing.T) {
	r := epochOf(GPUUse{ID: "GPU-1", Busy: 0.95, Means: told(map[history.Detail]float64{
		history.SMActive: 0.5, history.TensorActive: 0.125, history.ThrottledHWThermal: 0.25, history.MemoryUsed: 1 << 30})},
		GPUUse{ID: "GPU-2", Busy: 1, Means: told(map[history.Detail]float64{
			history.SMOccupancy: 0.5, history.DRAMActive: 0.75, history.SMClock: 1e9, history.Temperature: 60, history.Power: 100})})
	r.Split, r.Findings = true, []Finding{{TensorIdle, "One.", "Two."}}
	line, err := r.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		`"findings":[{"kind":"tensor_idle","text":"One.","remedy":"Two."}]`,
		`"devices":[{"id":"GPU-1","busy_ratio":0.95,"sm_active":0.5,"tensor_active":0.125,"memory_used_bytes":1073741824,"throttled":{"hw_thermal":0.25}},` +
			`{"id":"GPU-2","busy_ratio":1,"sm_occupancy":0.5,"dram_active":0.75,"sm_clock_hz":1000000000,"temperature_celsius":60,"power_watts":100}]`,
	} {
		if !strings.Contains(string(line), part) {
			t.Errorf("%s lacks %s", line, part)
		}
	}
	page, err := os.ReadFile("../../docs/report.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []FindingKind{TensorIdle, Throttled, Heating, MemoryGrows} {
		if !strings.Contains(string(page), "`"+string(kind)+"`") {
			t.Errorf("docs/report.md lacks %s", kind)
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
		{[]float64{1000, 1800, 2200, 2400}, false}, // comes to rest: the last by 200 of 467 in the mean
		{[]float64{1000, 1100, 1500, 2400}, true},
		{[]float64{2000, 2000, 2000, 2000, 2000}, false},
	} {
		var g Growth
		var r *Report
		for n, used := range c.epochs {
			r = epochOf(GPUUse{ID: "GPU-1", Means: told(map[history.Detail]float64{history.MemoryUsed: used * mib}), Limits: history.GPULimits{Memory: 80 << 30}})
			r.Run, r.Start.Mono = "train", time.Duration(n)*time.Second
			r.End.Mono += r.Start.Mono
			g.Learn(r)
			cut, load := *r, *r
			cut.Unfinished, load.Kind = true, ModelLoad
			g.Learn(&cut)
			g.Learn(&load)
			other := epochOf(GPUUse{ID: "GPU-1", Means: told(map[history.Detail]float64{history.MemoryUsed: 1})})
			other.Run = "other"
			g.Learn(other)
		}
		if f := r.Found(MemoryGrows); c.found != (f != nil) {
			t.Errorf("%d, %v: %+v", i, c.epochs, r.Findings)
		}
		if want := "GPU memory grew by 310 MiB an epoch over 4 epochs and reaches its limit of 80 GiB in about 258 epochs."; i == 0 &&
			r.Found(MemoryGrows).Text != want {
			t.Errorf("%+v, want %s", r.Findings, want)
		}
	}
	var g Growth
	for i := range 3 * mostRuns {
		r := epochOf(GPUUse{ID: "GPU-1", Means: told(map[history.Detail]float64{history.MemoryUsed: 1})})
		r.Run = fmt.Sprint(i)
		r.End.Mono += time.Duration(i)
		g.Learn(r)
	}
	if _, newest := g.runs[run{name: fmt.Sprint(3*mostRuns - 1)}]; len(g.runs) != mostRuns || !newest {
		t.Errorf("%d runs", len(g.runs))
	}
}

// TestMemoryGrowsSoonest: of several GPUs the one is told of that is full first.
func TestMemoryGrowsSoonest(t *testing.T) {
	var g Growth
	var r *Report
	total := func(i int) uint64 { // of the slice, which is nearly full in the end
		if i < 5 {
			return 80 << 30
		}
		if want := "Memory of GPU 2 grew by 1 GiB an epoch over 5 epochs and reaches its limit of 24 GiB in about 19 epochs."; r.Found(MemoryGrows).Text != want {
			t.Errorf("%+v, want %s", r.Findings, want)
		}
		return 13 << 29
	}
	for i := range 6 {
		use := func(id string, index int, total uint64) GPUUse {
			return GPUUse{ID: id, Means: told(map[history.Detail]float64{history.MemoryUsed: float64(i+1) * (1 << 30)}), Limits: history.GPULimits{Index: index, Memory: total}}
		}
		r = epochOf(use("GPU-a", 1, 80<<30), use("GPU-b", 2, 24<<30), use("MIG-c", 2, total(i)), GPUUse{ID: "GPU-3"})
		g.Learn(r)
	}
	if want := "Memory of MIG-c grew by 1 GiB an epoch over 6 epochs and reaches its limit of 6.5 GiB in the next one."; r.Found(MemoryGrows).Text != want {
		t.Errorf("%+v, want %s", r.Findings, want)
	}
}

// TestFindingsAreDocumented keeps docs/verdicts.md and the code from telling different numbers.
func TestFindingsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/verdicts.md")
	if err != nil {
		t.Fatal(err)
	}
	f := FindingThresholds
	for _, text := range []string{
		fmt.Sprintf("| `%s` | busy >= %.2f and tensor cores < %.2f |", TensorIdle, f.TensorBusy, f.Tensor),
		fmt.Sprintf("memory at %.2f of its bandwidth or more", f.DRAM),
		fmt.Sprintf("SMs below %.2f", f.SM),
		fmt.Sprintf("| `%s` | clocks held down for %.2f of the window or more", Throttled, f.Throttled),
		fmt.Sprintf("by the power cap for %.2f, and the mean clock at most %.2f of the highest seen (%.2f if the clock is unknown)",
			f.PowerCap, f.PowerClock, f.PowerBlind),
		fmt.Sprintf("| `%s` | in %s or more, from its first quarter to its last, at least %.0f degrees warmer and %.2f more power, and at most %.2f more work",
			Heating, Short(f.HeatingTime.Seconds()), f.HeatingDegree, f.HeatingPower, f.HeatingWork),
		fmt.Sprintf("within %.0f degrees of its slowdown limit, or at %.0f C if that limit is unknown", f.HeatingMargin, f.HeatingFrom),
		fmt.Sprintf("| `%s` | in %d epochs or more, each held at least %s more than the one before, the last one at least %.2f of their mean growth",
			MemoryGrows, f.GrowthEpochs, size(uint64(f.Growth)), f.GrowthLast),
		fmt.Sprintf("shorter than %.0f s", f.Least.Seconds()),
		fmt.Sprintf("| `%s` | the window is slow, `%s` or `%s`, and a disk", DiskFailing, StorageBound, Mixed),
		fmt.Sprintf("moved %g or more of all bytes on disks", ownShare),
	} {
		if !strings.Contains(string(page), text) {
			t.Errorf("docs/verdicts.md lacks: %s", text)
		}
	}
}
