package chain

import (
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// pauseOf says why a thread leaves its CPU, if that is known before it comes back.
func (t *Timeline) pauseOf(e *sample.ThreadEvent) pause {
	p := pause{kind: asleep, call: sample.CallOf(t.arch, e.Syscall)}
	switch {
	case e.State == sample.StateReady:
		p.kind = ready
	case e.IOWait, e.State == sample.StateBlocked:
		p.kind = storage
	case e.State == sample.StateAsleep && p.onFile(e.File):
		p.kind = storage
	}
	p.reason = t.reason(reasonOf(&p, e))
	return p
}

// mayTimeOut reports whether a call waits for a limited time, or may.
func (p *pause) mayTimeOut() bool {
	return p.call.Polls() || p.call == sample.SleepCall || p.call == sample.LockCall
}

// onFile reports whether a call waits for the data of a file: on a network or FUSE file system a thread sleeps in a
// state in which signals wake it.
func (p *pause) onFile(file sample.FileKind) bool {
	switch p.call {
	case sample.AIOCall:
		return true
	case sample.FileCall, sample.WriteCall:
		return file == sample.RegularFile || file == sample.Directory || file == sample.BlockDevice
	}
	return false
}

// causeOf returns the followed thread that ended a pause, or 0. One that waits for a block device is woken from
// interrupts, and the thread that ran there did not cause it. One that is blocked otherwise and is woken by a thread
// waited for a lock that it held.
func (t *Timeline) causeOf(p *pause, e *sample.ThreadEvent) int {
	if e.Waker == 0 || e.Waker == e.TID || t.threads[e.Waker] == nil || t.reasons.get(p.reason).Kind == ForStop {
		return 0
	}
	switch e.WakerKind {
	case sample.UserThread:
	case sample.SoftIRQ: // a packet on the way to this machine
		if p.kind == storage || p.call == sample.NoCall { // or data that came by network, and a page fault waits for
			return 0
		}
	default:
		return 0
	}
	if p.kind == storage && p.call == sample.AIOCall {
		return 0
	}
	return e.Waker
}

// learnFetching returns the share of a running segment of that length in which the kernel fetched data for so long.
func (th *thread) learnFetching(length, fetching time.Duration) float32 {
	if length <= 0 {
		return 0
	}
	share := min(1, max(0, fetching.Seconds()/length.Seconds()))
	th.fetching += (share - th.fetching) * min(1, length.Seconds()/recentTime.Seconds())
	return float32(share)
}
