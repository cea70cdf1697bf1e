package window

import (
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/history"
)

// judge draws the verdict from the ledger.
func (b *builder) judge() {
	b.Verdict = Unknown
	if b.machine.ClientGone {
		b.lack(Missing{Reason: ClientGone})
	}
	scheduled := b.Evidence.Followed() // it shows all waiting, and that of this job alone
	if !b.machine.Pressure && !scheduled {
		b.lack(Missing{Reason: NoIOPressure})
	}
	total := b.GPUTime().Seconds()
	if !b.Split || total <= 0 {
		b.lack(b.noLedger())
		return
	}
	s := b.Shares()
	if b.Unattributed() {
		b.Other, b.CPU, b.BusiestCore = b.Other+b.CPU, 0, b.CPU
	}
	if b.Lacks(GPULost) {
		b.Interrupted = true
		return
	}
	if b.hasGap() {
		return
	}
	if b.machine.HiddenReads && !scheduled && s.Busy < Thresholds.Busy {
		b.Uncertainty = min(1, b.Uncertainty+b.Other.Seconds()/total) // any of it may be waiting for storage
		b.lack(Missing{Reason: HiddenReads})
		return
	}
	b.Verdict = s.Verdict()
	storage, certain := s.Storage, b.Uncertainty <= Thresholds.Doubt
	if !certain {
		storage, certain = b.atAnyEnds()
	}
	if b.Duration() < MinJudged || !certain {
		b.Verdict = Unknown
		b.lack(b.uncertain())
		return
	}
	unpressed := !b.machine.Pressure && !b.FromMemory && !scheduled
	if unpressed {
		b.Uncertainty = min(1, b.Uncertainty+s.Other/2) // all of it may be waiting for storage
	}
	hidden := !scheduled && b.hidesRemoteIO(s)
	if hidden {
		b.lack(Missing{Reason: HiddenRemoteIO})
	}
	if b.Unattributed() && b.Verdict != StorageBound || b.Verdict == CPUBound && (hidden || unpressed && s.mayWait()) {
		b.Verdict = Unknown
	}
	if b.Gain.Seconds() < total && (b.Verdict != Unknown || !b.Unattributed()) {
		b.speedup(total)
	}
	if storage > Thresholds.Slow {
		b.Slow, b.SlowReason = true, SlowStorage
	}
}

// uncertain returns why too much is open for a verdict.
func (b *builder) uncertain() Missing {
	open := (b.Open/2 + b.Unread).Seconds() / b.Duration().Seconds()
	switch {
	case b.Duration() < MinJudged || b.Uncertainty-open > Thresholds.Doubt:
		return Missing{Reason: TooShort} // also if all of it was read, and its ends were known
	case b.Unread > b.Open/2:
		return Missing{Reason: NotFollowed, Time: b.Unread}
	}
	return Missing{Reason: OpenEnds, Time: b.Open}
}

// atAnyEnds reports whether the verdict is the same, and certain, wherever the ends of a window are that are open. It
// also returns the smallest share of storage.
func (b *builder) atAnyEnds() (storage float64, same bool) {
	if b.Open <= 0 || b.Verdict == Unknown {
		return 0, false
	}
	storage = b.Shares().Storage
	before, after := b.StartOpen/2, (b.Open-b.StartOpen)/2
	for _, by := range [][2]time.Duration{{-before, after}, {-before, -after}, {before, after}, {before, -after}} {
		start, end := b.Start.Mono+by[0], b.End.Mono+by[1]
		if end <= start {
			return 0, false
		}
		r := b.over(b.Window, start, end)
		if r.Verdict != b.Verdict {
			return 0, false
		}
		storage = min(storage, r.Shares().Storage)
	}
	return storage, true
}

// hasGap reports whether there are no readings for much of the window: this program was stopped or got no CPU. Sums
// over such a gap do not show what coincided in it. While the machine is suspended the clock of windows stands still,
// so that suspension is no gap.
func (b *builder) hasGap() bool {
	unread := b.history.Unread(history.HostCPUTime, b.Start.Mono, b.End.Mono)
	if unread.Seconds() <= Thresholds.Doubt*b.Duration().Seconds() {
		return false
	}
	b.Interrupted = true
	b.Uncertainty = min(1, b.Uncertainty+unread.Seconds()/b.Duration().Seconds())
	b.lack(Missing{Reason: ReadingGap, Time: unread})
	return true
}

// hidesRemoteIO reports whether unexplained idle time may be waiting for a network or FUSE file system. The kernel
// shows such waiting only for data that go through the page cache.
func (b *builder) hidesRemoteIO(s Shares) bool {
	return len(b.Mounts) > 0 && len(b.Disks) == 0 && s.Other >= Thresholds.Stall
}

// noLedger returns why there is no ledger.
func (b *builder) noLedger() Missing {
	for _, id := range b.GPUs {
		if !slices.Contains(b.machine.GPUs, id) {
			return Missing{Reason: UnknownGPU, Device: id}
		}
	}
	return Missing{Reason: NoReadings}
}
