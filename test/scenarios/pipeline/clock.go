//go:build linux

package pipeline

import (
	"time"

	"golang.org/x/sys/unix"
)

// clock turns Go's monotonic readings, which begin somewhere else in each process, into CLOCK_MONOTONIC, which all
// processes share. A reading takes 25 ns, for it never enters the kernel.
type clock struct {
	origin time.Time
	raw    time.Duration // CLOCK_MONOTONIC at origin
}

// newClock compares the two clocks until it knows their difference to some 10 ns: each reading of one between two of
// the other bounds it from both sides.
func newClock() clock {
	origin := time.Now()
	raw := difference(func() time.Duration { return time.Since(origin) })
	return clock{origin: origin, raw: raw}
}

func (c clock) now() time.Duration { return c.raw + time.Since(c.origin) }

// difference is how far CLOCK_MONOTONIC is ahead of other, which must run at its pace.
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

// clockOf asks the kernel. It fails for unknown clocks alone.
func clockOf(id int32) time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(id, &t)
	return time.Duration(t.Nano())
}

// threadCPU is how long this thread has been on a CPU, to the nanosecond.
func threadCPU() time.Duration { return clockOf(unix.CLOCK_THREAD_CPUTIME_ID) }

// sleepUntil puts this thread to sleep in the kernel, as a program without a runtime of its own would sleep: Go's
// Sleep would have another thread wake it.
func (c clock) sleepUntil(at time.Duration) {
	deadline := unix.NsecToTimespec(at.Nanoseconds())
	for unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &deadline, nil) == unix.EINTR {
	}
}
