package window

import (
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/history"
)

// Judgement is what follows from a window's ledger.
type Judgement struct {
	Verdict     Verdict
	Missing     []Missing // what the report lacks
	Uncertainty float64   // half the width of the widest part of the ledger, as a share of the window's GPU time
	Interrupted bool      // a counter restarted, a device was added or removed, or readings are missing

	WhatIf      *WhatIf // nil unless the Evidence is Followed
	Speedup     float64 // with instant storage, or of NetworkBound with peers that send at once; 0 if unknown
	SpeedupLow  float64 // its range; 0 if unknown
	SpeedupHigh float64 // 0 if only SpeedupLow is known

	Slow       bool
	SlowReason string        // one of the registry's stallspan.slowness.reason
	SlowAfter  time.Duration // of the window, when it became slow by its duration; 0 if it did not
	Limit      time.Duration // the configured limit that the window was compared with; 0 without one
	Baseline   *Baseline     // how long such windows usually take; nil if unknown
}

// judge is the fourth stage. It draws the verdict.
func judge(v *view, r *Report) Judgement {
	j := Judgement{Verdict: Unknown, Uncertainty: r.width, Interrupted: r.broken || r.torn, WhatIf: predict(v, r)}
	for _, gpu := range r.lost {
		j.lack(Missing{Reason: GPULost, Device: gpu})
	}
	for _, disk := range r.reset {
		j.lack(Missing{Reason: DiskReset, Device: disk})
	}
	if v.machine.ClientGone {
		j.lack(Missing{Reason: ClientGone})
	}
	followed := r.Evidence.Followed() // it shows all waiting, and that of this job alone
	if !v.machine.Pressure && !followed {
		j.lack(Missing{Reason: NoIOPressure})
	}
	total := r.GPUTime().Seconds()
	if !r.Split || total <= 0 {
		j.lack(v.noLedger())
		return j
	}
	s := r.Shares()
	if len(r.lost) > 0 {
		j.Interrupted = true
		return j
	}
	if unread := v.gap(); unread > 0 {
		j.Interrupted = true
		j.Uncertainty = min(1, j.Uncertainty+unread.Seconds()/v.Duration().Seconds())
		j.lack(Missing{Reason: ReadingGap, Time: unread})
		return j
	}
	if v.machine.HiddenReads && !followed && s.Busy < Thresholds.Busy {
		j.Uncertainty = min(1, j.Uncertainty+r.Other.Seconds()/total) // any of it may be waiting for storage
		j.lack(Missing{Reason: HiddenReads})
		return j
	}
	j.Verdict = s.Verdict()
	if kind, _ := r.MainReason(); j.Verdict == Unknown && s.Other-s.Network >= Thresholds.Other && kind.known() {
		j.Verdict = WaitBound
	}
	storage, certain := s.Storage, j.Uncertainty <= Thresholds.Doubt
	if !certain {
		storage, certain = v.atAnyEnds(j.Verdict, s.Storage)
	}
	if v.Duration() < MinJudged || !certain {
		j.Verdict = Unknown
		j.lack(v.uncertain(j.Uncertainty))
		return j
	}
	unpressed := !v.machine.Pressure && !r.FromMemory && !followed
	if unpressed {
		j.Uncertainty = min(1, j.Uncertainty+s.Other/2) // all of it may be waiting for storage
	}
	// The kernel shows waiting for a network or FUSE file system only for data that go through the page cache.
	hidden := !followed && len(r.Mounts) > 0 && len(r.Disks) == 0 && s.Other >= Thresholds.Stall
	if hidden {
		j.lack(Missing{Reason: HiddenRemoteIO})
	}
	if r.Unattributed() && j.Verdict != StorageBound || j.Verdict == CPUBound && (hidden || unpressed && s.mayWait()) {
		j.Verdict = Unknown
	}
	if r.Gain.Seconds() < total && (j.Verdict != Unknown || !r.Unattributed()) {
		j.speedup(r)
	}
	if storage > Thresholds.Slow {
		j.Slow, j.SlowReason = true, SlowStorage
	}
	return j
}

func (j *Judgement) lack(m Missing) { j.Missing = append(j.Missing, m) }

// uncertain returns why too much is open for a verdict.
func (v *view) uncertain(uncertainty float64) Missing {
	open := (v.Open/2 + v.Unread).Seconds() / v.Duration().Seconds()
	switch {
	case v.Duration() < MinJudged || uncertainty-open > Thresholds.Doubt:
		return Missing{Reason: TooShort} // also if all of it was read, and its ends were known
	case v.Unread > v.Open/2:
		return Missing{Reason: NotFollowed, Time: v.Unread}
	}
	return Missing{Reason: OpenEnds, Time: v.Open}
}

// atAnyEnds reports whether a verdict is the same, and certain, wherever the ends of a window are that are open. It
// also returns the smallest share of storage.
func (v *view) atAnyEnds(verdict Verdict, share float64) (storage float64, same bool) {
	if v.Open <= 0 || verdict == Unknown {
		return 0, false
	}
	storage = share
	before, after := v.StartOpen/2, (v.Open-v.StartOpen)/2
	for _, by := range [][2]time.Duration{{-before, after}, {-before, -after}, {before, after}, {before, -after}} {
		start, end := v.Start.Mono+by[0], v.End.Mono+by[1]
		if end <= start {
			return 0, false
		}
		r := v.over(*v.Window, start, end)
		if r.Verdict != verdict {
			return 0, false
		}
		storage = min(storage, r.Shares().Storage)
	}
	return storage, true
}

// gap returns for how long there are no readings in the window, if that is much of it: this program was stopped or got
// no CPU. Sums over such a gap do not show what coincided in it. While the machine is suspended the clock of windows
// stands still, so that suspension is no gap.
func (v *view) gap() time.Duration {
	unread := v.history.Unread(history.HostCPUTime, v.Start.Mono, v.End.Mono)
	if unread.Seconds() <= Thresholds.Doubt*v.Duration().Seconds() {
		return 0
	}
	return unread
}

// noLedger returns why there is no ledger.
func (v *view) noLedger() Missing {
	for _, id := range v.GPUs {
		if !slices.Contains(v.machine.GPUs, id) {
			return Missing{Reason: UnknownGPU, Device: id}
		}
	}
	return Missing{Reason: NoReadings}
}
