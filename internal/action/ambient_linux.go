package action

import (
	"math"
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"
)

// start starts a program without the ambient capabilities that a unit may have given us (capabilities(7)). They belong to
// threads, so it is done on one that ends with this. Nor does it get what was left open for us by whoever started us: our
// own files are never passed on, and these are not from then on (close_range(2), since Linux 5.11).
func start(cmd *exec.Cmd) error {
	_ = unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()                                                      // and never unlocked: the thread is not used again
		_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) // before Linux 4.3 there are none
		started <- cmd.Start()
	}()
	return <-started
}
