package slowdisk

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// monotonic is the time on CLOCK_MONOTONIC.
func monotonic() time.Duration {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) // cannot fail for this clock
	return time.Duration(now.Nano())
}

// sleep returns at a moment of CLOCK_MONOTONIC, or at once where that is over. It keeps a thread asleep, which a server
// with few requests under way can afford: Go's own timers are rounded to a millisecond, and those of the kernel's that
// its poller waits for come up to ten late while its threads wait for requests.
func sleep(until time.Duration) {
	if until <= monotonic() {
		return
	}
	at := unix.NsecToTimespec(until.Nanoseconds())
	for errors.Is(unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &at, nil), unix.EINTR) {
	}
}
