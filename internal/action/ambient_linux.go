package action

import (
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"
)

// start starts a program without the ambient capabilities that a unit may have given us (capabilities(7)). They belong to
// threads, so it is done on one that ends with this.
func start(cmd *exec.Cmd) error {
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()                                                      // and never unlocked: the thread is not used again
		_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) // before Linux 4.3 there are none
		started <- cmd.Start()
	}()
	return <-started
}
