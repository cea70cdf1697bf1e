package mount

import (
	"os"

	"golang.org/x/sys/unix"
)

// openList opens a list without os.Open: Go's poller would then wait for changes, too, and each is reported once.
func openList(path string) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// reportsChanges reports whether poll(2) reports changes: in procfs it does, and not in a copy of it.
func reportsChanges(file *os.File) bool {
	var fs unix.Statfs_t
	return unix.Fstatfs(int(file.Fd()), &fs) == nil && fs.Type == unix.PROC_SUPER_MAGIC
}

// changed reports whether the mounts changed since the file was opened, or since the last call (mounts_poll of
// fs/proc_namespace.c). Without an answer they may have.
func changed(file *os.File) bool {
	fds := []unix.PollFd{{Fd: int32(file.Fd()), Events: unix.POLLPRI}}
	_, err := unix.Poll(fds, 0)
	return err != nil || fds[0].Revents != 0
}
