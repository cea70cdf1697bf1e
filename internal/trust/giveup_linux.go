package trust

import (
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Needs starts this program again if it has rights that it must not or need not have: those that its file gave it, and
// capabilities of a user other than root that are not in the set. It returns nil without an effect if there is nothing
// to give up; it does not return if it has given up something.
func Needs(set Set) error {
	switch r := current(); {
	case r.elevated():
		return r.startAgain(0)
	case r.euid == 0, r.permitted&^(r.ambient&uint64(set)) == 0:
		return nil
	}
	return Keep(set)
}

// Keep starts this program again with no other capabilities than those of the set. Root stays root without them. It
// returns if that fails only.
func Keep(set Set) error {
	r := current()
	if r.euid == 0 {
		return r.startAgain(r.permitted & uint64(set))
	}
	return r.startAgain(r.ambient & uint64(set))
}

// startAgain starts this program again. Rights belong to threads in Linux, and only one thread is left after execve(2),
// so no part of the program keeps what another one gave up.
func (r rights) startAgain(keep uint64) error {
	path, err := os.Executable()
	if err != nil {
		return err
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := r.giveUp(keep); err != nil {
		return err
	}
	return fmt.Errorf("start %s again: %w", path, syscall.Exec(path, os.Args, os.Environ()))
}

// giveUp leaves this thread the rights of its user and some ambient capabilities.
func (r rights) giveUp(keep uint64) error {
	if r.elevated() || r.euid == 0 {
		// Otherwise the file, or the user, would give them again. The flag is inherited: no child can use setuid programs.
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return fmt.Errorf("set no_new_privs: %w", err)
		}
	}
	// These calls of x/sys/unix are for this thread only.
	if _, _, err := unix.RawSyscall(unix.SYS_SETRESGID, uintptr(r.gid), uintptr(r.gid), uintptr(r.gid)); err != 0 {
		return fmt.Errorf("set the group: %w", err)
	}
	if _, _, err := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(r.uid), uintptr(r.uid), uintptr(r.uid)); err != 0 {
		return fmt.Errorf("set the user: %w", err)
	}
	if r.uid == 0 && r.euid != 0 {
		return nil // root starts a file of another user
	}
	return limit(keep)
}
