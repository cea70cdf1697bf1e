package gpu

import (
	"math"
	"time"
)

// domain is the clock of a driver's timestamps. nvml.h says microseconds of CPU time, which is Unix time with some
// drivers and time since boot with others.
type domain int

const (
	unknownClock domain = iota
	unixClock
	monotonicClock
	bootClock
)

const (
	maxAhead = 50 * time.Millisecond // clock jitter; a timestamp further in the future is garbage
	maxAge   = 10 * time.Minute      // longer than the driver's buffer
)

// now returns the current time of one clock.
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

// place converts a driver's timestamp to Stamp.Mono. It returns false if the timestamp cannot be from the last minutes.
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

// domainOf returns the clock on which the newest valid sample is youngest. The two clocks since boot differ by the time
// of suspension, which is longer than a sample is old. Without suspension they are equal.
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
