package history

import (
	"math"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// clock stores the offsets between the wall clock and the monotonic clock, to convert wall times. The kernel slews both
// clocks alike, so the offset changes only when the wall clock is set, or across a suspension.
type clock struct {
	steps []clockStep // oldest first
}

// clockStep is a change of the offset.
type clockStep struct {
	since time.Duration // monotonic
	zero  time.Time     // wall time at monotonic time zero, with this offset
}

const (
	sameClock     = time.Millisecond // smaller differences come from reading the clocks one after the other
	maxClockSteps = 1024
)

func (c *clock) note(at sample.Stamp) {
	if at.Wall.IsZero() {
		return
	}
	zero := at.Wall.Add(-at.Mono)
	if n := len(c.steps); n > 0 && zero.Sub(c.steps[n-1].zero).Abs() < sameClock {
		return
	}
	if len(c.steps) == maxClockSteps {
		c.steps = append(c.steps[:0], c.steps[maxClockSteps/2:]...)
	}
	c.steps = append(c.steps, clockStep{at.Mono, zero})
}

// mono converts a wall time. A time after now assumes that the offset stays. A time that the clock skipped is converted
// to the time of the step. It reports false for a time that the clock showed twice, because it was set back.
func (c *clock) mono(wall time.Time, now time.Duration) (at time.Duration, ok bool) {
	shown := 0
	for i := range c.steps {
		begin, end := c.interval(i)
		if m := wall.Sub(c.steps[i].zero); m >= begin && m < end && m <= now { // Sub saturates
			at, shown = m, shown+1
		}
	}
	if shown > 0 {
		return at, shown == 1
	}
	for i, p := range c.steps {
		begin, end := c.interval(i)
		if wall.Sub(p.zero) >= begin && wall.Sub(p.zero) < end {
			return wall.Sub(p.zero), true // later than now
		}
		if wall.Sub(p.zero) >= end && wall.Sub(c.steps[i+1].zero) < end {
			return end, true
		}
	}
	return 0, false
}

// interval returns when offset i applied. The first one also applies before its time.
func (c *clock) interval(i int) (begin, end time.Duration) {
	begin, end = math.MinInt64, math.MaxInt64
	if i > 0 {
		begin = c.steps[i].since
	}
	if i+1 < len(c.steps) {
		end = c.steps[i+1].since
	}
	return begin, end
}

// Mono converts a wall time to the monotonic clock, within a millisecond. A time after now assumes that the clocks keep
// their offset. It reports false before the first Append, and for a time that the clock showed twice, because it was
// set back.
func (h *History) Mono(wall time.Time, now time.Duration) (time.Duration, bool) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.clock.mono(wall, now)
}

// First returns the time of the oldest stored row on the axis of s.
func (h *History) First(s Series) (time.Duration, bool) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	a := &h.axes[s.kind().axis()]
	if !a.used {
		return 0, false
	}
	first := a.last
	for i := range a.tiers {
		if t := &a.tiers[i]; t.next > 0 {
			first = min(first, t.oldest())
		}
	}
	return first, true
}
