package sample

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// OnMonotonic returns the Stamp.Mono of a time on CLOCK_MONOTONIC, on which the kernel stamps events. It is exact to
// about 0.1 us, and the error is the same for all times.
func OnMonotonic(clock time.Duration) time.Duration { return clock - monotonicOrigin() }

// Origin is the reading of CLOCK_MONOTONIC at Stamp.Mono 0, as exact as OnMonotonic.
func Origin() time.Duration { return monotonicOrigin() }

// monotonicOrigin is the reading of CLOCK_MONOTONIC at origin. Go reads the same clock, but does not show the value.
var monotonicOrigin = sync.OnceValue(func() time.Duration {
	const tries = 1000 // a few hundred microseconds in all
	low, high := time.Duration(-1<<63), time.Duration(1<<63-1)
	for range tries {
		before := monotonic()
		now := time.Since(origin)
		after := monotonic()
		low, high = max(low, before-now), min(high, after-now)
	}
	return low + (high-low)/2
})

func monotonic() time.Duration {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) // cannot fail for this clock
	return time.Duration(now.Nano())
}
