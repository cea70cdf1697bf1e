package slowdisk

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// monotonic returns the time on CLOCK_MONOTONIC.
func monotonic() time.Duration {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) // cannot fail for this clock
	return time.Duration(now.Nano())
}

// sleep returns at a moment of CLOCK_MONOTONIC, or at once if it has passed. It blocks a thread, which a server with
// few requests in flight can afford. Go's timers are rounded to a millisecond, and the kernel's timers behind Go's
// poller are up to ten milliseconds late while its threads wait for requests.
func sleep(until time.Duration) {
	if until <= monotonic() {
		return
	}
	at := unix.NsecToTimespec(until.Nanoseconds())
	for errors.Is(unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &at, nil), unix.EINTR) {
	}
}
