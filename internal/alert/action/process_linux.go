package action

import (
	"errors"
	"math"
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"
)

// start starts a program without the ambient capabilities that the agent's unit may grant (capabilities(7)) and without
// inherited file descriptors. Capabilities belong to threads, so the thread that drops them ends with the goroutine.
// Files opened by Go are close-on-exec already; close_range(2), since Linux 5.11, covers those that the agent
// inherited.
func start(cmd *exec.Cmd) error {
	_ = unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked, so that the thread is not reused
		// Fails before Linux 4.3, which has no ambient capabilities.
		_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
		started <- cmd.Start()
	}()
	return <-started
}

// wait waits for a program and kills what is left of its process group. The group is killed before cmd.Wait reaps the
// program: until then its process group ID cannot be reused.
func wait(cmd *exec.Cmd) error {
	for {
		err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	_ = cmd.Cancel() // fails if the group is empty
	return cmd.Wait()
}
