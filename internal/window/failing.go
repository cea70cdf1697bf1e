package window

import (
	"slices"

	"github.com/stallspan/stallspan/internal/sample"
)

// Bounds of the finding disk_failing.
const (
	mostFailing = 3   // disks of one window that are told of, the worst
	ownShare    = 0.1 // of what the disks moved, from which on one counts that is not known to be the window's
)

// failing keeps what is known of the window's disks that are failing, or have something else to look at. drives are judged,
// the worst first. Nothing of it is told before it is known that the window was slow, or waited for storage.
func (r *Report) failing(drives []sample.Drive) {
	var all uint64
	for i := range r.Disks {
		all += r.Disks[i].ReadBytes + r.Disks[i].WriteBytes
	}
	for i := range drives {
		d := &drives[i]
		if !ill(d.Status) || d.Finding == "" || !r.worksWith(d.Device, all) {
			continue
		}
		if f := (Finding{DiskFailing, d.Finding, d.Remedy}); len(r.ill) < mostFailing && !slices.Contains(r.ill, f) {
			r.ill = append(r.ill, f)
		}
	}
	if r.Slow || r.Verdict == StorageBound || r.Verdict == Mixed {
		r.tellFailing()
	}
}

// tellFailing takes what is known of its disks over into the findings, once.
func (r *Report) tellFailing() {
	r.Findings = append(r.Findings, r.ill...)
	r.ill = nil
}

// worksWith says whether a disk is one of those that the window reads from or writes to: those under its path, also one
// that hangs and did nothing, those that it can have read from, and where it named none those that moved a part of all.
func (r *Report) worksWith(disk string, all uint64) bool {
	if len(r.Seen.Under) > 0 {
		return slices.Contains(r.Seen.Under, disk)
	}
	i := slices.IndexFunc(r.Disks, func(d DiskUse) bool { return d.Name == disk })
	if i < 0 {
		return false
	}
	moved := r.Disks[i].ReadBytes + r.Disks[i].WriteBytes
	return slices.Contains(r.From, disk) || moved > 0 && float64(moved) >= ownShare*float64(all)
}

func ill(s sample.DriveStatus) bool {
	switch s {
	case sample.DriveDegraded, sample.DriveFailing, sample.DriveFailed, sample.DriveVanished:
		return true
	}
	return false
}
