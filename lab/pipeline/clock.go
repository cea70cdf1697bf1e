//go:build linux

package pipeline

import (
	"time"

	"golang.org/x/sys/unix"
)

// clock converts Go's monotonic readings, which have a different origin in each process, to CLOCK_MONOTONIC, which all
// processes share. A reading takes 25 ns, because it needs no system call.
type clock struct {
	origin time.Time
	raw    time.Duration // CLOCK_MONOTONIC at origin
}

// newClock compares the two clocks until their difference is known to about 10 ns: each reading of one clock between
// two of the other one bounds it from both sides.
func newClock() clock {
	origin := time.Now()
	raw := difference(func() time.Duration { return time.Since(origin) })
	return clock{origin: origin, raw: raw}
}

func (c clock) now() time.Duration { return c.raw + time.Since(c.origin) }

// difference returns how far CLOCK_MONOTONIC is ahead of other, which must have the same rate.
func difference(other func() time.Duration) time.Duration {
	var least, most time.Duration
	for i := range 500 {
		before := clockOf(unix.CLOCK_MONOTONIC)
		at := other()
		after := clockOf(unix.CLOCK_MONOTONIC)
		if i == 0 || before-at > least {
			least = before - at
		}
		if i == 0 || after-at < most {
			most = after - at
		}
	}
	return least + (most-least)/2
}

// clockOf reads a clock of the kernel. It fails for unknown clocks only.
func clockOf(id int32) time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(id, &t)
	return time.Duration(t.Nano())
}

// threadCPU returns the CPU time of this thread in nanoseconds.
func threadCPU() time.Duration { return clockOf(unix.CLOCK_THREAD_CPUTIME_ID) }

// sleepUntil puts this thread to sleep in the kernel, like a program without a runtime. Go's Sleep would need another
// thread to wake it.
func (c clock) sleepUntil(at time.Duration) {
	deadline := unix.NsecToTimespec(at.Nanoseconds())
	for unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &deadline, nil) == unix.EINTR {
	}
}
