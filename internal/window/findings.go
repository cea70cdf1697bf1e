package window

import (
	"slices"
	"time"

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

// Further is what is shown besides the verdict.
type Further struct {
	Findings []Finding // facts about GPUs and disks besides the verdict
	pending  []Finding // facts about disks that count only if the window is slow

	Stalls     []Stall
	StallBegan time.Duration // first wait for storage, monotonic; zero without one

	PhaseReports []*Report // of Window.Phases, in their order: the ledger of each
}

// find is the fifth stage.
func find(v *view, r *Report) (f Further) {
	f.Findings = v.gpuFindings(r)
	if batch := v.firstBatch(r); batch != nil {
		f.Findings = append(f.Findings, *batch)
	}
	f.pending = failing(r, v.machine.Drives)
	if r.Slow || r.Verdict == StorageBound || r.Verdict == Mixed {
		f.addPending()
	}
	f.Stalls, f.StallBegan = v.stalls(r)
	for i := range v.Phases {
		p := &v.Phases[i]
		w := *v.Window
		w.Kind, w.Name, w.Model, w.Path = Custom, p.Name, "", ""
		f.PhaseReports = append(f.PhaseReports, v.over(w, p.Start, p.End))
	}
	return f
}

// gpuFindings returns facts about the GPUs.
func (v *view) gpuFindings(r *Report) (all []Finding) {
	t := &FindingThresholds
	if len(r.Uses) == 0 || r.Lacks(GPULost) || r.Lacks(ReadingGap) || v.Duration() < t.MinDuration {
		return nil
	}
	computes := v.Kind == Epoch || v.Kind == Custom // a load or a checkpoint moves bytes
	if idle := tensorIdle(r.Uses); idle != nil && computes {
		all = append(all, *idle)
	}
	if worst := throttled(r.Uses); worst != nil {
		return append(all, *worst)
	}
	if computes && v.Duration() >= t.HeatingTime {
		for i := range r.Uses {
			if hot := v.heating(&r.Uses[i]); hot != nil {
				return append(all, *hot)
			}
		}
	}
	return all
}

// failing returns findings on the disks of the window that are in bad health. drives are in order, the worst first.
func failing(r *Report, drives []sample.Drive) (all []Finding) {
	for i := range drives {
		d := &drives[i]
		if !inBadHealth(d.Status) || d.Finding == "" || !r.worksWith(d.Device, r.Seen.Under) {
			continue
		}
		if f := (FailingDisk{d.Finding, d.Remedy}); len(all) < maxFailing && !slices.Contains(all, Finding(f)) {
			all = append(all, f)
		}
	}
	return all
}

// addPending makes the pending facts findings.
func (f *Further) addPending() {
	f.Findings, f.pending = append(f.Findings, f.pending...), nil
}

func inBadHealth(s sample.DriveStatus) bool {
	switch s {
	case sample.DriveDegraded, sample.DriveFailing, sample.DriveFailed, sample.DriveVanished:
		return true
	}
	return false
}
