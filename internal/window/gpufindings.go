package window

import "github.com/stallspan/stallspan/internal/history"

// IdleTensorCores reports that the GPUs were busy, but their tensor cores hardly were. The shares are means over GPUs.
type IdleTensorCores struct {
	GPUs         int     // that report their tensor cores
	Busy, Tensor float64 // of these
	DRAM, SM     float64 // of the GPUs that report them
	MemoryBound  bool    // DRAM is known and is the limit
	SmallKernels bool    // SM is known and low
}

// Kind is TensorIdle.
func (IdleTensorCores) Kind() FindingKind { return TensorIdle }

// tensorIdle uses the GPUs that report their tensor cores.
func tensorIdle(uses []GPUUse) *IdleTensorCores {
	t := &FindingThresholds
	var busy, tensor, n float64
	for i := range uses {
		if share, known := uses[i].Means.Get(history.TensorActive); known {
			busy, tensor, n = busy+uses[i].Busy, tensor+share, n+1
		}
	}
	busy, tensor = busy/n, tensor/n
	if n == 0 || busy < t.TensorBusy || tensor >= t.Tensor {
		return nil
	}
	dram, hasDRAM := meanOf(uses, history.DRAMActive)
	sm, hasSM := meanOf(uses, history.SMActive)
	return &IdleTensorCores{
		GPUs: int(n), Busy: busy, Tensor: tensor, DRAM: dram, SM: sm,
		MemoryBound: hasDRAM && dram >= t.DRAM, SmallKernels: hasSM && sm < t.SM,
	}
}

// meanOf returns the mean of d over the GPUs that report it.
func meanOf(uses []GPUUse, d history.Detail) (mean float64, ok bool) {
	var sum, n float64
	for i := range uses {
		if v, known := uses[i].Means.Get(d); known {
			sum, n = sum+v, n+1
		}
	}
	if n == 0 {
		return 0, false
	}
	return sum / n, true
}

// Throttling reports that a GPU held its clocks down, for a cause that costs speed.
type Throttling struct {
	GPU   *GPUUse
	Cause history.Detail // one of history's Throttled*
	Share float64        // of the window
}

// Kind is Throttled.
func (Throttling) Kind() FindingKind { return Throttled }

// throttleCauses are the causes that cost speed. The voltage limit is not one of them: a GPU at its highest clocks is
// always there.
var throttleCauses = [...]history.Detail{
	history.ThrottledThermal, history.ThrottledHWThermal, history.ThrottledPowerBrake, history.ThrottledSyncBoost,
	history.ThrottledBoard, history.ThrottledPower,
}

// throttled returns the GPU that was throttled most, with the cause; nil if none was.
func throttled(uses []GPUUse) *Throttling {
	var worst Throttling
	for i := range uses {
		u := &uses[i]
		for _, cause := range throttleCauses {
			if share, known := u.Means.Get(cause); known && share > worst.Share && u.slowedBy(cause, share) {
				worst = Throttling{u, cause, share}
			}
		}
	}
	if worst.GPU == nil {
		return nil
	}
	return &worst
}

// slowedBy reports whether a cause held long enough to cost speed.
func (u *GPUUse) slowedBy(cause history.Detail, share float64) bool {
	t := &FindingThresholds
	if cause != history.ThrottledPower {
		return share >= t.Throttled
	}
	clock, known := u.Means.Get(history.SMClock)
	if !known || u.Limits.Clock == 0 {
		return share >= t.PowerBlind
	}
	return share >= t.PowerCap && clock <= t.PowerClock*u.Limits.Clock
}

// Overheating reports that a GPU's temperature and power rose in the window, and its throughput did not.
type Overheating struct {
	GPU                               *GPUUse
	FirstTemperature, LastTemperature float64 // C, means of the first and the last quarter
	FirstPower, LastPower             float64 // W
}

// Kind is Heating.
func (Overheating) Kind() FindingKind { return Heating }

// heating compares the first quarter of the window with the last one. It is for cases in which the throttle counters
// are missing or still zero. Only a GPU near its limit counts: every GPU warms up when work begins.
func (v *view) heating(u *GPUUse) *Overheating {
	t := &FindingThresholds
	quarter := v.Duration() / 4
	first := partOf(v.history, u.ID, v.Start.Mono, v.Start.Mono+quarter)
	last := partOf(v.history, u.ID, v.End.Mono-quarter, v.End.Mono)
	cold, okCold := first.means.Get(history.Temperature)
	hot, okHot := last.means.Get(history.Temperature)
	low, okLow := first.means.Get(history.Power)
	high, okHigh := last.means.Get(history.Power)
	if !okCold || !okHot || !okLow || !okHigh {
		return nil
	}
	limit := t.HeatingFrom
	if u.Limits.SlowdownAt > 0 {
		limit = u.Limits.SlowdownAt - t.HeatingMargin
	}
	before, after := work(&first, &last)
	warmer := hot >= limit && hot-cold >= t.HeatingDegree && high >= low*(1+t.HeatingPower)
	if !warmer || before <= 0 || after > before*(1+t.HeatingWork) {
		return nil
	}
	return &Overheating{u, cold, hot, low, high}
}

// work estimates what a GPU did in two parts of a window, from values that both report: the activity of its SMs, or how
// busy it was, times the SM clock.
func work(x, y *part) (before, after float64) {
	before, after = x.busy, y.busy
	for _, d := range []history.Detail{history.SMActive, history.SMClock} {
		first, okFirst := x.means.Get(d)
		last, okLast := y.means.Get(d)
		switch {
		case !okFirst || !okLast:
		case d == history.SMActive:
			before, after = first, last
		default:
			before, after = before*first, after*last
		}
	}
	return before, after
}
