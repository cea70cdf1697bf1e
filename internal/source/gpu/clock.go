package gpu

import (
	"math"
	"time"
)

// domain is the clock of a driver's timestamps. nvml.h calls them microseconds of CPU time and means Unix time on some
// drivers and the time since boot on others.
type domain int

const (
	unknownClock domain = iota
	unixClock
	monotonicClock
	bootClock
)

const (
	maxAhead = 50 * time.Millisecond // a timestamp this far in the future may be the clocks' jitter; more is garbage
	maxAge   = 10 * time.Minute      // the driver's buffer is shorter
)

// now is the present on one clock.
func (c clocks) now(d domain) time.Duration {
	switch d {
	case unixClock:
		return time.Duration(c.at.Wall.UnixNano())
	case monotonicClock:
		return c.monotonic
	default:
		return c.boot
	}
}

// place puts a driver's timestamp on Stamp.Mono. Not ok: it cannot be of the last minutes on that clock.
func (c clocks) place(d domain, raw uint64) (at time.Duration, ok bool) {
	if d == unknownClock || raw == 0 || raw > math.MaxInt64/uint64(time.Microsecond) {
		return 0, false
	}
	age := c.now(d) - time.Duration(raw)*time.Microsecond
	if age < -maxAhead || age > maxAge {
		return 0, false
	}
	return c.at.Mono - max(age, 0), true
}

// domainOf finds the clock on which the newest believable point is youngest. The clocks since boot differ by the time
// that the machine was suspended, which is longer than a sample is old; where it was not, they are the same.
func (c clocks) domainOf(points []utilSample) domain {
	for i := len(points) - 1; i >= 0; i-- {
		best, youngest := unknownClock, time.Duration(0)
		for d := unixClock; d <= bootClock; d++ {
			if at, ok := c.place(d, points[i].timestamp); ok && (best == unknownClock || at > youngest) {
				best, youngest = d, at
			}
		}
		if best != unknownClock {
			return best
		}
	}
	return unknownClock
}
