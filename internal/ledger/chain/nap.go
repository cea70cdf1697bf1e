package chain

import "time"

// naps are the sleeps of a thread that polls with a timeout, since it last did something else. An event loop has such
// a timeout (10 ms in gloo): the thread looks, finds nothing, and sleeps on. What ends the last nap is what it waited
// for in all of them.
type naps struct {
	taking bool
	began  time.Duration // of the first nap
	clocks clocks        // before the first nap
}

// whole returns the sleep as which a segment counts in the clocks: with the naps before it, if it is what ended them.
// It moves the clocks back to the first nap then.
func (th *thread) whole(s *segment) *segment {
	if th.looks.first && s.attends {
		th.clocks = th.looks.clocks
		all := *s
		all.from = th.looks.began
		return &all
	}
	switch {
	case s.nap && !th.naps.taking:
		th.naps = naps{true, s.from, th.clocks}
	case s.nap || !th.naps.taking:
	case s.kind == asleep:
		th.naps.taking = false
		if s.waker == 0 && !s.receives {
			break
		}
		for i := len(th.segments) - 1; i >= 0 && th.segments[i].from >= th.naps.began; i-- {
			if nap := &th.segments[i]; nap.nap {
				nap.nap, nap.waker, nap.reason, nap.receives = false, s.waker, s.reason, s.receives
			}
		}
		th.clocks = th.naps.clocks
		all := *s
		all.from = th.naps.began
		return &all
	case s.kind != running && s.kind != ready, s.to-s.from > maxLook && s.kind == running:
		th.naps.taking = false
	}
	return s
}
