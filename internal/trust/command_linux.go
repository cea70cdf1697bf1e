package trust

import (
	"errors"
	"math"
	"runtime"

	"golang.org/x/sys/unix"
)

// Launch starts the program without inherited file descriptors and without core dumps, which would hold what we gave
// it. Rights belong to threads, so the thread that gives them up ends with its goroutine. Files opened by Go are
// close-on-exec already; close_range(2), since Linux 5.11, covers those that we inherited.
func (c *Command) Launch(r Rights) error {
	_ = unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked, so that the thread is not reused
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
	_ = unix.Prlimit(c.Process.Pid, unix.RLIMIT_CORE, &unix.Rlimit{}, nil) // fails for sudo, which sets its own
	return nil
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
