package window

import (
	"slices"

	"github.com/stallspan/stallspan/internal/sample"
)

// Finding is a fact about a window's GPUs or disks besides the verdict, which it never changes. It is one of
// IdleTensorCores, Throttling, Overheating, MemoryGrowth, FirstBatch and FailingDisk.
type Finding interface {
	Kind() FindingKind
}

// FindingKind names a kind of finding.
type FindingKind string

const (
	TensorIdle     FindingKind = "tensor_idle"  // busy, but its tensor cores hardly were
	Throttled      FindingKind = "throttled"    // clocks held down for a cause that costs speed
	Heating        FindingKind = "heating"      // temperature and power rose together, and throughput did not
	MemoryGrows    FindingKind = "memory_grows" // from epoch to epoch
	FirstBatchLate FindingKind = "first_batch"  // an epoch's work began late
	DiskFailing    FindingKind = "disk_failing" // slow or waiting for storage, on a disk in bad health
)

// FailingDisk is a disk of the window in bad health. Its sentences come from the drive's assessment.
type FailingDisk struct{ Text, Remedy string }

// Kind is DiskFailing.
func (FailingDisk) Kind() FindingKind { return DiskFailing }

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
