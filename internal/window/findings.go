package window

import (
	"fmt"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/history"
)

// Finding is something that was seen of a window's GPUs beside what the verdict tells. It never changes the verdict.
type Finding struct {
	Kind   FindingKind
	Text   string // one sentence
	Remedy string // one sentence
}

// FindingKind names a finding.
type FindingKind string

const (
	TensorIdle  FindingKind = "tensor_idle"  // busy, but its tensor cores hardly were
	Throttled   FindingKind = "throttled"    // it held its clocks down for a cause that costs speed
	Heating     FindingKind = "heating"      // temperature and power rose together, and throughput did not
	MemoryGrows FindingKind = "memory_grows" // from epoch to epoch
)

// FindingThresholds say from where on each finding holds. docs/verdicts.md explains each; a test compares the two.
var FindingThresholds = struct {
	Least time.Duration // the shortest window of which means are believed

	TensorBusy float64 // tensor_idle: share of the time in which the GPU was busy, at least
	Tensor     float64 // and its tensor cores, less than
	DRAM       float64 // from here on its memory is the limit
	SM         float64 // below this its kernels are too small for it

	Throttled  float64 // throttled: share of the time, at least
	PowerCap   float64 // the same of the power cap, which is reached by many that do nothing wrong
	PowerClock float64 // where the mean clock is at most this share of the highest one
	PowerBlind float64 // share of the time where the clock is not told

	HeatingTime   time.Duration // heating: the shortest window
	HeatingDegree float64       // from its first to its last quarter the temperature rose by degrees
	HeatingPower  float64       // and the power by this share
	HeatingWork   float64       // and the work by no more than this share
	HeatingMargin float64       // and it is within degrees of where it slows down
	HeatingFrom   float64       // or, where that is not told, at this temperature

	GrowthEpochs int     // memory_grows: epochs, each of which held more than the one before
	Growth       float64 // by bytes
	GrowthLast   float64 // and the last one by at least this share of their mean growth
}{
	Least:      2 * time.Second,
	TensorBusy: 0.8, Tensor: 0.15, DRAM: 0.5, SM: 0.5,
	Throttled: 0.05, PowerCap: 0.2, PowerClock: 0.9, PowerBlind: 0.5,
	HeatingTime: time.Minute, HeatingDegree: 5, HeatingPower: 0.1, HeatingWork: 0.02, HeatingMargin: 10, HeatingFrom: 80,
	GrowthEpochs: 4, Growth: 64 << 20, GrowthLast: 0.5,
}

// further looks for what the verdict does not tell.
func (r *Report) further(h *history.History) {
	if len(r.Uses) == 0 || r.GPULost() || r.Unwatched() || r.Duration() < FindingThresholds.Least {
		return
	}
	if r.trains() {
		r.tensorIdle()
	}
	if !r.throttled() && r.trains() && r.Duration() >= FindingThresholds.HeatingTime {
		for i := range r.Uses {
			if r.heating(h, &r.Uses[i]) {
				break
			}
		}
	}
}

// trains says that the window is about computing: a load or a checkpoint moves bytes.
func (r *Report) trains() bool { return r.Kind == Epoch || r.Kind == Custom }

func (r *Report) find(kind FindingKind, text, remedy string) {
	r.Findings = append(r.Findings, Finding{kind, text, remedy})
}

// tensorIdle is about the mean of the GPUs that tell of their tensor cores.
func (r *Report) tensorIdle() {
	t := &FindingThresholds
	var busy, tensor, n float64
	for i := range r.Uses {
		if share, told := r.Uses[i].Means.Get(history.TensorActive); told {
			busy, tensor, n = busy+r.Uses[i].Busy, tensor+share, n+1
		}
	}
	busy, tensor = busy/n, tensor/n
	if n == 0 || busy < t.TensorBusy || tensor >= t.Tensor {
		return
	}
	text := fmt.Sprintf("The GPU was busy %s of the time, but its tensor cores only %s", percent(busy), percent(tensor))
	if n > 1 {
		text = fmt.Sprintf("The %.0f GPUs were busy %s of the time, but their tensor cores only %s", n, percent(busy), percent(tensor))
	}
	dram, sm := r.mean(history.DRAMActive), r.mean(history.SMActive)
	switch {
	case dram != nil && *dram >= t.DRAM:
		r.find(TensorIdle, text+"; memory was at "+percent(*dram)+" of its bandwidth, and is the limit.",
			"Move fewer bytes for each result: larger batches, fused kernels, or smaller types such as bf16.")
	case sm != nil && *sm < t.SM:
		r.find(TensorIdle, text+", and its SMs "+percent(*sm)+": the kernels are too small to fill it.",
			"Give it more work at a time: larger batches, fused kernels or CUDA graphs.")
	default:
		r.find(TensorIdle, text+": it computes in types or shapes that these do not take.",
			"Compute in bf16, fp16 or TF32, with sizes that are multiples of 8; larger batches and fused kernels help too.")
	}
}

// mean is that of the GPUs that tell of d; nil where none does.
func (r *Report) mean(d history.Detail) *float64 {
	var sum, n float64
	for i := range r.Uses {
		if v, told := r.Uses[i].Means.Get(d); told {
			sum, n = sum+v, n+1
		}
	}
	if n == 0 {
		return nil
	}
	return new(sum / n)
}

// causes are why a GPU throttled where that costs speed. The voltage's limit is not among them: at its highest clocks a GPU
// is always there.
var causes = []struct {
	detail history.Detail
	words  string
	remedy string
}{
	{history.ThrottledThermal, "because it was too hot", cool},
	{history.ThrottledHWThermal, "because it was too hot for its own protection", cool},
	{history.ThrottledPowerBrake, "because the machine's power supply asked for it",
		"Look at the machine's power supplies and at the power budget of its rack."},
	{history.ThrottledSyncBoost, "because another GPU of its group was slower",
		"Look at the others of its group: the slowest one sets the pace."},
	{history.ThrottledBoard, "because its board was at its limit", "Look at the machine's power supplies and their cables."},
	{history.ThrottledPower, "to stay below its power cap", "Raise the cap where the board may draw more (nvidia-smi -q -d POWER); otherwise this is the GPU's speed."},
}

const cool = "Look at its cooling: fans, airflow, dust, and what is hot beside it."

// throttled tells of the GPU and the cause with the largest share of the window.
func (r *Report) throttled() bool {
	var worst *GPUUse
	var why int
	var most float64
	for i := range r.Uses {
		for c := range causes {
			share, told := r.Uses[i].Means.Get(causes[c].detail)
			if told && share > most && r.Uses[i].slowed(causes[c].detail, share) {
				worst, why, most = &r.Uses[i], c, share
			}
		}
	}
	if worst == nil {
		return false
	}
	text := fmt.Sprintf("%s held its clocks down for %s of the time %s", r.called(worst), percent(most), causes[why].words)
	r.find(Throttled, text+worst.against(causes[why].detail)+".", causes[why].remedy)
	return true
}

// slowed says that a cause held for so long that it cost speed.
func (u *GPUUse) slowed(d history.Detail, share float64) bool {
	t := &FindingThresholds
	if d != history.ThrottledPower {
		return share >= t.Throttled
	}
	clock, told := u.Means.Get(history.SMClock)
	if !told || u.Limits.Clock == 0 {
		return share >= t.PowerBlind
	}
	return share >= t.PowerCap && clock <= t.PowerClock*u.Limits.Clock
}

// against holds temperature or power against its limit.
func (u *GPUUse) against(d history.Detail) string {
	text := ""
	temperature, hot := u.Means.Get(history.Temperature)
	clock, ticks := u.Means.Get(history.SMClock)
	switch d {
	case history.ThrottledThermal, history.ThrottledHWThermal:
		if hot {
			text = fmt.Sprintf(": %.0f C in the mean", temperature)
		}
		if hot && u.Limits.SlowdownAt > 0 {
			text += fmt.Sprintf(", and it slows down at %.0f C", u.Limits.SlowdownAt)
		}
	case history.ThrottledPower:
		if u.Limits.Power > 0 {
			text = fmt.Sprintf(" of %.0f W", u.Limits.Power)
		}
		if ticks && u.Limits.Clock > 0 {
			text += fmt.Sprintf(": its SMs ran at %.0f MHz in the mean, and have run at %.0f MHz", clock/1e6, u.Limits.Clock/1e6)
		}
	}
	return text
}

// called is how a sentence about one GPU begins.
func (r *Report) called(u *GPUUse) string {
	if len(r.GPUIDs) == 1 {
		return "The GPU"
	}
	return u.ID
}

// heating compares the first quarter of the window with the last one. It is for what the counters of throttling do not tell,
// or not yet; so only what is near its limit counts, for every GPU warms up when its work begins.
func (r *Report) heating(h *history.History, u *GPUUse) bool {
	t := &FindingThresholds
	quarter := r.Duration() / 4
	first := partOf(h, u.ID, r.Start.Mono, r.Start.Mono+quarter)
	last := partOf(h, u.ID, r.End.Mono-quarter, r.End.Mono)
	cold, okCold := first.means.Get(history.Temperature)
	hot, okHot := last.means.Get(history.Temperature)
	low, okLow := first.means.Get(history.Power)
	high, okHigh := last.means.Get(history.Power)
	if !okCold || !okHot || !okLow || !okHigh {
		return false
	}
	from := t.HeatingFrom
	if u.Limits.SlowdownAt > 0 {
		from = u.Limits.SlowdownAt - t.HeatingMargin
	}
	before, after := work(&first, &last)
	if hot < from || hot-cold < t.HeatingDegree || high < low*(1+t.HeatingPower) || before <= 0 || after > before*(1+t.HeatingWork) {
		return false
	}
	text := fmt.Sprintf("%s went from %.0f to %.0f C and from %.0f to %.0f W, and did no more for it", r.called(u), cold, hot, low, high)
	if u.Limits.SlowdownAt > 0 {
		text += fmt.Sprintf("; it slows down at %.0f C", u.Limits.SlowdownAt)
	}
	r.find(Heating, text+".", cool)
	return true
}

// work is what a GPU did in two parts of a window, by what both tell: the activity of its SMs, or lacking that how busy it
// was, at the speed of their clock.
func work(a, b *part) (before, after float64) {
	before, after = a.busy, b.busy
	for _, d := range []history.Detail{history.SMActive, history.SMClock} {
		x, okX := a.means.Get(d)
		y, okY := b.means.Get(d)
		switch {
		case !okX || !okY:
		case d == history.SMActive:
			before, after = x, y
		default:
			before, after = before*x, after*y
		}
	}
	return before, after
}

// Found is the finding of that kind, or nil.
func (r *Report) Found(kind FindingKind) *Finding {
	if i := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Kind == kind }); i >= 0 {
		return &r.Findings[i]
	}
	return nil
}
