package trust

import (
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Needs starts this program again if it has rights that it must not or need not have: those that its file gave it, and
// capabilities of a user other than root that are not in the set. Rights belong to threads in Linux, and only one
// thread is left after execve(2), so no part of the program keeps what another one gave up. It returns nil without an
// effect if there is nothing to give up; it does not return if it has given up something.
func Needs(set Set) error {
	r := current()
	keep := r.ambient & uint64(set)
	switch {
	case r.elevated():
		keep = 0
	case r.euid == 0, r.permitted&^keep == 0:
		return nil
	}
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
	if r.elevated() {
		// Otherwise the file would give the rights again. The flag is inherited: no child can use setuid programs.
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
	if r.uid == 0 {
		return nil // root starts a file of another user
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	for i := range sets {
		part := uint32(keep >> (32 * i))
		sets[i] = unix.CapUserData{Effective: part, Permitted: part, Inheritable: part}
	}
	if err := unix.Capset(&header, &sets[0]); err != nil {
		return fmt.Errorf("give up capabilities: %w", err)
	}
	return nil
}
