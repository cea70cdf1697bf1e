package perfetto

import "time"

// budget bounds how many events a part of a trace has, without an end before the trace's. Each time that half of what
// is left is used, detail becomes coarser.
type budget struct {
	left   int
	next   int           // coarser when so much is left
	detail time.Duration // what is shorter is drawn together, or left out; 0 for everything
	first  time.Duration // the first detail above 0
	since  time.Duration // when detail was raised for the first time
}

// coarser is the factor between two steps.
const coarser = 4

func newBudget(events int, first time.Duration) budget {
	return budget{left: events, next: events / 2, first: first}
}

// spend takes events. It reports false if not enough are left.
func (b *budget) spend(events int, at time.Duration) bool {
	if b.left < events {
		return false
	}
	if b.left -= events; b.left > b.next {
		return true
	}
	if b.next = b.left / 2; b.detail == 0 {
		b.detail, b.since = b.first, at
	} else {
		b.detail *= coarser
	}
	return true
}
