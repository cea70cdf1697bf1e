package trust

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// StartWith calls start on a thread whose new processes get only the capabilities of this process that are in the set.
// It takes the others away from the thread's ambient set meanwhile.
func StartWith(set Set, start func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for c := range uintptr(64) {
		if set&(1<<c) != 0 {
			continue
		}
		given, err := unix.PrctlRetInt(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_IS_SET, c, 0, 0)
		if err != nil || given == 0 {
			continue
		}
		if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_LOWER, c, 0, 0); err != nil {
			return fmt.Errorf("keep capability %d from a child: %w", c, err)
		}
		defer func() { _ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, c, 0, 0) }() // it was set before
	}
	return start()
}
