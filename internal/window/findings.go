package window

import (
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/history"
)

// Finding is something that was seen of a window's GPUs, or is known of its disks, beside what the verdict tells. It never
// changes the verdict.
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
	DiskFailing FindingKind = "disk_failing" // it was slow or waited for storage, and a disk of it is not as it should be
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

// Found is the finding of that kind, or nil.
func (r *Report) Found(kind FindingKind) *Finding {
	if i := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Kind == kind }); i >= 0 {
		return &r.Findings[i]
	}
	return nil
}
