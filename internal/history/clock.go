package history

import (
	"math"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// clock remembers how the wall clock stood to the monotonic one, so that a moment that somebody wrote down by the wall
// clock is found on the axes. The kernel slews both alike, so they part only when the wall clock is set, or across a
// suspension.
type clock struct {
	parted []parting // oldest first
}

// parting is a moment since when the two clocks keep their distance.
type parting struct {
	since time.Duration // monotonic
	zero  time.Time     // what the wall clock showed, by that distance, when the monotonic one stood at zero
}

const (
	sameClock    = time.Millisecond // closer than this, two differences are one: the clocks are read one after the other
	mostPartings = 1024
)

func (c *clock) note(at sample.Stamp) {
	if at.Wall.IsZero() {
		return
	}
	zero := at.Wall.Add(-at.Mono)
	if n := len(c.parted); n > 0 && zero.Sub(c.parted[n-1].zero).Abs() < sameClock {
		return
	}
	if len(c.parted) == mostPartings {
		c.parted = append(c.parted[:0], c.parted[mostPartings/2:]...)
	}
	c.parted = append(c.parted, parting{at.Mono, zero})
}

// mono is the moment at which the wall clock showed wall, or will show it if it goes on as it does at the moment now. A time
// that it leapt over is the moment of the leap. It is false for a time that it showed twice, having been set back.
func (c *clock) mono(wall time.Time, now time.Duration) (at time.Duration, ok bool) {
	shown := 0
	for i := range c.parted {
		begin, end := c.stretch(i)
		if there := wall.Sub(c.parted[i].zero); there >= begin && there < end && there <= now { // Sub knows no overflow
			at, shown = there, shown+1
		}
	}
	if shown > 0 {
		return at, shown == 1
	}
	for i, p := range c.parted {
		begin, end := c.stretch(i)
		if wall.Sub(p.zero) >= begin && wall.Sub(p.zero) < end {
			return wall.Sub(p.zero), true // later than now
		}
		if wall.Sub(p.zero) >= end && wall.Sub(c.parted[i+1].zero) < end {
			return end, true
		}
	}
	return 0, false
}

// stretch is when the distance i held. What was before the first one is taken to have been alike.
func (c *clock) stretch(i int) (begin, end time.Duration) {
	begin, end = math.MinInt64, math.MaxInt64
	if i > 0 {
		begin = c.parted[i].since
	}
	if i+1 < len(c.parted) {
		end = c.parted[i+1].since
	}
	return begin, end
}

// Mono is the moment at which the wall clock showed wall, to a millisecond; now is the present moment, and what is later
// is as the clock stands now. It is false as long as nothing was appended, and for a time that the clock showed twice,
// because it was set back in between.
func (h *History) Mono(wall time.Time, now time.Duration) (time.Duration, bool) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.clock.mono(wall, now)
}

// First is the time of the oldest row that is kept on the axis of s.
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
