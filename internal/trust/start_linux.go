package trust

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// StartWith calls start on a thread whose new processes get only the capabilities of this process that are in the set.
// The thread ends with that.
func StartWith(set Set, start func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked, so that the thread is not reused
		if err := LimitThread(set); err != nil {
			done <- err
			return
		}
		done <- start()
	}()
	return <-done
}

// LimitThread takes all capabilities but those of the set from this thread, which must stay with its goroutine, and
// from processes that it starts, also those of root.
func LimitThread(set Set) error {
	// Otherwise a program that root starts has all that the bounding set allows, and a file may give others.
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	return limit(current().permitted & uint64(set))
}

// limit sets the capabilities of this thread. Ambient ones that are not among them are lost, too (capabilities(7)).
func limit(to uint64) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	for i := range sets {
		part := uint32(to >> (32 * i))
		sets[i] = unix.CapUserData{Effective: part, Permitted: part, Inheritable: part}
	}
	if err := unix.Capset(&header, &sets[0]); err != nil {
		return fmt.Errorf("give up capabilities: %w", err)
	}
	return nil
}
