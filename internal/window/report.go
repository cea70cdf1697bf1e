package window

import (
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// Report is everything that is known of one window: facts, and what follows from them. Package explain makes sentences
// from it.
type Report struct {
	Window
	Facts
	Ledger
	Device
	Judgement
	Further

	Who sample.JobName // the job with a name whose window it is; zero if unknown

	Others       int     // other windows that read from one of the disks of From at the same time
	OthersByDisk []int   // the same for each disk of From
	Storms       []Storm // I/O storms that were detected as this window ended
	Recent       *Report // the last RecentTime of a longer window that is still open
}

// Storm is a time in which several slow windows read from one disk.
type Storm struct {
	Disk    string
	Windows int           // that read from it at that time, slow or not
	Since   time.Duration // since two of them were slow
}

// GPUTime is the time that the ledger divides: the duration, once for each GPU.
func (r *Report) GPUTime() time.Duration {
	return r.Duration() * time.Duration(max(1, len(r.GPUIDs)))
}

// Unattributed reports whether the CPU time of the ledger is of no particular program: there is neither a GPU nor a
// job. It counts as other.
func (r *Report) Unattributed() bool { return r.Scope == Host && len(r.GPUIDs) == 0 }

// BusyRatio is the share of the window's GPU time in which a GPU worked.
func (r *Report) BusyRatio() float64 {
	if total := r.GPUTime(); total > 0 {
		return r.Busy.Seconds() / total.Seconds()
	}
	return 0
}

// StallKnown reports whether it is known what the time was lost to, besides what worked.
func (r *Report) StallKnown() bool { return !r.Lacks(HiddenReads) }

// Shares returns the parts of the ledger as shares of its time. The CPU share of an Unattributed ledger is that of the
// busiest core.
func (r *Report) Shares() Shares { return r.shares(r.GPUTime()) }

// Wall converts a monotonic time to wall time. It counts from the start of the window, so that a step of the wall clock
// within the window moves nothing.
func (w *Window) Wall(mono time.Duration) time.Time { return w.Start.Wall.Add(mono - w.Start.Mono) }

// OthersOn is how many other windows read from a disk of From at the same time.
func (r *Report) OthersOn(disk string) int {
	if i := slices.Index(r.From, disk); i >= 0 && i < len(r.OthersByDisk) {
		return r.OthersByDisk[i]
	}
	return 0
}
