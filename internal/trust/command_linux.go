package trust

import (
	"errors"
	"math"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// usualSlack is the kernel's timer slack in ns. The agent has a longer one, which programs would inherit.
const usualSlack = 50_000

// Launch starts the program within limits, without inherited file descriptors and without core dumps, which would hold
// what we gave it. Rights belong to threads, so the thread that gives them up ends with its goroutine. Files opened by
// Go are close-on-exec already; close_range(2), since Linux 5.11, covers those that we inherited.
func (c *Command) Launch(r Rights) error {
	_ = unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked, so that the thread is not reused
		_ = unix.Prctl(unix.PR_SET_TIMERSLACK, usualSlack, 0, 0, 0)
		if !r.Ambient {
			// Fails before Linux 4.3, which has no ambient capabilities.
			_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
		}
		if !r.Setuid {
			if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
				started <- err
				return
			}
		}
		started <- c.Start()
	}()
	if err := <-started; err != nil {
		return err
	}
	for resource, most := range c.limits() { // sudo sets its own, so it fails there
		_ = unix.Prlimit(c.Process.Pid, resource, &unix.Rlimit{Cur: most, Max: most}, nil)
	}
	return nil
}

// Limits of a program and what it starts, also of what leaves its group and so outlives it.
const (
	maxFileSize = 1 << 30 // bytes of a file that it writes
	maxFiles    = 4096    // open at a time
)

// limits returns limits by resource. Processes are not limited, because the kernel counts those of a whole user. Nor is
// memory: address space that is only reserved would count.
func (c *Command) limits() map[int]uint64 {
	limits := map[int]uint64{unix.RLIMIT_CORE: 0, unix.RLIMIT_FSIZE: maxFileSize, unix.RLIMIT_NOFILE: maxFiles}
	if c.timeout > 0 {
		limits[unix.RLIMIT_CPU] = uint64(c.timeout/time.Second) + 1
	}
	return limits
}

// Await waits for the program and kills what is left of its group. That happens before the program is waited for: until
// then no other group can have its number.
func (c *Command) Await() error {
	for errors.Is(unix.Waitid(unix.P_PID, c.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
	}
	_ = c.kill() // fails if the group is empty
	c.finished()
	return c.Wait()
}
