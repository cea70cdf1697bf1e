package window

import (
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/history"
)

// judge draws the verdict from the ledger, marks the window slow, and finds the words.
func (r *Report) judge(h *history.History, m Machine) {
	r.Verdict = Unknown
	total := r.GPUTime()
	if !r.Split || total <= 0 {
		r.blind(m)
		return
	}
	s := shares{
		busy:    r.Busy.Seconds() / total.Seconds(),
		storage: r.Storage.Seconds() / total.Seconds(),
		cpu:     r.CPU.Seconds() / total.Seconds(),
		other:   r.Other.Seconds() / total.Seconds(),
	}
	if r.Unattributed() { // whose CPU time that is, is not known
		r.Other, r.CPU = r.Other+r.CPU, 0
	}
	if r.lost(s) || r.unwatched(h, s) {
		return
	}
	if m.Unseen && s.busy < Thresholds.Busy {
		r.unseen(s, total)
		return
	}
	if r.Uncertainty > Thresholds.Doubt {
		r.Finding = "The window lasted " + Short(r.Duration().Seconds()) + ", too short to tell what its time went to."
		r.Remedy = "Look at a longer one: CPU time is counted in ticks of 10 ms, and a GPU's driver tells of it late."
		return
	}
	r.Verdict = s.verdict()
	if r.unpressed = !m.Pressure && !r.waitless; r.unpressed {
		r.Uncertainty = min(1, r.Uncertainty+s.other/2) // all of it may have been waiting for storage
	}
	if r.Unattributed() && r.Verdict != StorageBound || r.Verdict == CPUBound && (r.hidden(s) || r.unpressed && s.mayWait()) {
		r.Verdict = Unknown
	}
	if gain := r.Gain.Seconds() / total.Seconds(); gain < 1 && (r.Verdict != Unknown || !r.Unattributed()) {
		r.Speedup = 1 / (1 - gain)
	}
	if s.storage > Thresholds.Slow {
		r.Slow, r.SlowReason = true, SlowStorage
	}
	r.Finding = r.finding(s)
	r.Remedy = r.remedy(s, m)
}

// lost says that a GPU could not be read for a part of the window: then what there is of the ledger is no ground for a
// verdict.
func (r *Report) lost(s shares) bool {
	if r.unread == "" {
		return false
	}
	r.Interrupted = true
	r.Finding = r.unread + " could not be read for a part of this window: what was seen is that it was busy for " +
		percent(s.busy) + " of the window's time."
	r.Remedy = "Look for Xid and NVRM in the kernel's log; stallspan check says whether the driver answers."
	return true
}

// unwatched says that for much of the window nothing was read: this program was stopped, or the machine did not let it run.
// What was summed up over such a gap does not tell what coincided in it. While the machine is suspended the clock of windows
// stands still: that is no gap. Nor does the finding tell of it, for a wall clock that is set ahead looks the same.
func (r *Report) unwatched(h *history.History, s shares) bool {
	unread := h.Unread(history.HostCPUTime, r.Start.Mono, r.End.Mono)
	if unread.Seconds() <= Thresholds.Doubt*r.Duration().Seconds() {
		return false
	}
	r.Interrupted, r.gap = true, true
	r.Uncertainty = min(1, r.Uncertainty+unread.Seconds()/r.Duration().Seconds())
	r.Finding = r.who(s) + " of the time, but for " + Short(unread.Seconds()) +
		" of it nothing was read: what watches was stopped, or the machine did not let it run."
	r.Remedy = "Look at a window without such a gap."
	return true
}

// hidden says that the idle time that is not explained may be waiting for a network or FUSE file system: the kernel
// tells of that only where the data go through the page cache.
func (r *Report) hidden(s shares) bool {
	return len(r.Mounts) > 0 && len(r.Disks) == 0 && s.other >= Thresholds.Stall
}

// mayWait says that CPU work would not be what held the work up, had all of the idle time that is not explained been waiting
// for storage.
func (s shares) mayWait() bool {
	return s.other >= Thresholds.Stall && s.cpu < Thresholds.Ratio*(s.storage+s.other)
}

// unseen says that the job's waiting for storage could not be told from others', so any of the idle time may be that.
func (r *Report) unseen(s shares, total time.Duration) {
	r.Uncertainty = min(1, r.Uncertainty+r.Other.Seconds()/total.Seconds())
	r.Finding = r.who(s) + " of the time; what the program reads cannot be told, so neither can its waiting for storage."
	r.Remedy = "Let what watches run as the program's user, or with CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH."
}

// Unattributed says that there is neither a GPU nor a program whose CPU time is known: that of the whole machine is
// anybody's, and counted as other.
func (r *Report) Unattributed() bool { return r.Scope == Host && len(r.GPUIDs) == 0 }

// blind says why there is no ledger.
func (r *Report) blind(m Machine) {
	for _, id := range r.GPUs {
		if !slices.Contains(m.GPUs, id) {
			r.Finding = "No GPU with the id " + id + " is watched here, so its time cannot be split."
			r.Remedy = "Announce the window with the ids of this machine's GPUs, or with none for all of them."
			return
		}
	}
	r.Finding = "The window is older than what is kept, or too short to have been read."
	r.Remedy = "Announce windows at their start, so that readings are taken at both ends."
}
