package history

import (
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

// mono is the latest moment at which the wall clock showed wall. A time that it leapt over is the moment of the leap.
func (c *clock) mono(wall time.Time) (time.Duration, bool) {
	if len(c.parted) == 0 {
		return 0, false
	}
	for i := len(c.parted) - 1; i > 0; i-- {
		p := c.parted[i]
		at := wall.Sub(p.zero) // which knows no overflow
		if at >= p.since {
			return at, true
		}
		if wall.Sub(c.parted[i-1].zero) >= p.since {
			return p.since, true
		}
	}
	return wall.Sub(c.parted[0].zero), true
}

// Mono is the moment at which the wall clock showed wall, to a millisecond; the latest one where it was set back. It is
// false as long as nothing was appended.
func (h *History) Mono(wall time.Time) (time.Duration, bool) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.clock.mono(wall)
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
