package chain

import "time"

// A signal that kills a thread ends its sleep, too. The thread did not wait for the sender: it waited for what was
// expected to end the sleep.

// cut is the newest sleep of a thread that no thread of a job ended.
type cut struct {
	at     time.Duration // when it ended; 0 for none
	waker  int32         // the thread that was expected to end it
	reason reasonID
	clocks clocks // when it began
}

// mayCut notes that a sleep has just ended that may have been cut by a signal. Call it before the sleep is closed.
func (th *thread) mayCut(t *Timeline, at time.Duration) {
	th.cut = cut{}
	if at-th.since < minCut {
		return
	}
	w := walker{Timeline: t, path: []*thread{th}}
	if next := w.expected(th); next != nil && next != th {
		th.cut = cut{at: at, waker: int32(next.tid), reason: th.pause.reason, clocks: th.clocks}
	}
}

// uncut gives the sleep to the thread that was expected to end it, if all that the thread did after it was to die.
func (th *thread) uncut(t *Timeline) {
	if th.cut.at == 0 || th.died-th.cut.at > exitTime {
		return
	}
	i := len(th.segments) - 1
	for ; i >= 0 && th.segments[i].to > th.cut.at; i-- {
		if k := th.segments[i].kind; k != running && k != ready {
			return
		}
	}
	if i < 0 || th.segments[i].kind != asleep || th.segments[i].waker != 0 {
		return
	}
	th.segments[i].waker, th.segments[i].reason = th.cut.waker, th.cut.reason
	if by := t.threads[int(th.cut.waker)]; by == nil || by.died == 0 && by.openKind() == asleep {
		return // its clocks do not show yet what its own sleep is for: the time counts as it is
	}
	th.clocks = th.cut.clocks
	for ; i < len(th.segments); i++ {
		th.clocks.add(t, th, &th.segments[i])
	}
}
