package window

import (
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// Finding is a fact about a window's GPUs or disks besides the verdict, which it never changes. It is one of
// IdleTensorCores, Throttling, Overheating, MemoryGrowth and FailingDisk.
type Finding interface {
	Kind() FindingKind
}

// FindingKind names a kind of finding.
type FindingKind string

const (
	TensorIdle  FindingKind = "tensor_idle"  // busy, but its tensor cores hardly were
	Throttled   FindingKind = "throttled"    // clocks held down for a cause that costs speed
	Heating     FindingKind = "heating"      // temperature and power rose together, and throughput did not
	MemoryGrows FindingKind = "memory_grows" // from epoch to epoch
	DiskFailing FindingKind = "disk_failing" // slow or waiting for storage, on a disk in bad health
)

// FailingDisk is a disk of the window in bad health. Its sentences come from the drive's assessment.
type FailingDisk struct{ Text, Remedy string }

// Kind is DiskFailing.
func (FailingDisk) Kind() FindingKind { return DiskFailing }

// FindingThresholds are the limits from which each finding holds. docs/verdicts.md has the same numbers; a test
// compares.
var FindingThresholds = struct {
	MinDuration time.Duration // the shortest window with meaningful means

	TensorBusy float64 // tensor_idle: the GPU was busy for at least this share
	Tensor     float64 // and its tensor cores for less
	DRAM       float64 // from here its memory is the limit
	SM         float64 // below this its kernels are too small for it

	Throttled  float64 // throttled: share of the time, at least
	PowerCap   float64 // the same for the power cap, which many healthy GPUs reach
	PowerClock float64 // if the mean clock is at most this share of the highest one
	PowerBlind float64 // share of the time if the clock is not reported

	HeatingTime   time.Duration // heating: the shortest window
	HeatingDegree float64       // rise in degrees from the first to the last quarter
	HeatingPower  float64       // and rise in power by this share
	HeatingWork   float64       // and rise in work by no more than this share
	HeatingMargin float64       // and at most this many degrees below the slowdown temperature
	HeatingFrom   float64       // or, if that is not reported, at least this hot

	GrowthEpochs int     // memory_grows: consecutive epochs, each with more memory than the one before
	Growth       float64 // by at least so many bytes
	GrowthLast   float64 // and the last one by at least this share of the mean growth
}{
	MinDuration: 2 * time.Second,
	TensorBusy:  0.8, Tensor: 0.15, DRAM: 0.5, SM: 0.5,
	Throttled: 0.05, PowerCap: 0.2, PowerClock: 0.9, PowerBlind: 0.5,
	HeatingTime: time.Minute, HeatingDegree: 5, HeatingPower: 0.1, HeatingWork: 0.02, HeatingMargin: 10, HeatingFrom: 80,
	GrowthEpochs: 4, Growth: 64 << 20, GrowthLast: 0.5,
}

// Finding returns the finding of a kind, or nil.
func (r *Report) Finding(kind FindingKind) Finding {
	if i := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Kind() == kind }); i >= 0 {
		return r.Findings[i]
	}
	return nil
}

// findings adds facts about the GPUs.
func (b *builder) findings() {
	if len(b.Uses) == 0 || b.Lacks(GPULost) || b.Lacks(ReadingGap) || b.Duration() < FindingThresholds.MinDuration {
		return
	}
	computes := b.Kind == Epoch || b.Kind == Custom // a load or a checkpoint moves bytes
	if computes {
		b.tensorIdle()
	}
	if !b.throttled() && computes && b.Duration() >= FindingThresholds.HeatingTime {
		for i := range b.Uses {
			if b.heating(&b.Uses[i]) {
				break
			}
		}
	}
}

// maxFailing is the largest number of failing disks in one report. The worst are kept.
const maxFailing = 3

// failing keeps the disks of the window that are in bad health. drives are in order, the worst first. They become
// findings if the window is slow or waited for storage.
func (b *builder) failing(drives []sample.Drive) {
	for i := range drives {
		d := &drives[i]
		if !inBadHealth(d.Status) || d.Finding == "" || !b.worksWith(d.Device) {
			continue
		}
		if f := (FailingDisk{d.Finding, d.Remedy}); len(b.pending) < maxFailing && !slices.Contains(b.pending, Finding(f)) {
			b.pending = append(b.pending, f)
		}
	}
	if b.Slow || b.Verdict == StorageBound || b.Verdict == Mixed {
		b.addPending()
	}
}

// addPending makes the pending facts findings.
func (r *Report) addPending() {
	r.Findings, r.pending = append(r.Findings, r.pending...), nil
}

func inBadHealth(s sample.DriveStatus) bool {
	switch s {
	case sample.DriveDegraded, sample.DriveFailing, sample.DriveFailed, sample.DriveVanished:
		return true
	}
	return false
}
