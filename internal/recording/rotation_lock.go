package recording

import (
	"os"
	"syscall"
)

// lock marks a file as being written by this program, until it is closed. It is false where another program has marked
// it. A file system that has no such locks goes without.
func lock(file *os.File) bool {
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != syscall.EWOULDBLOCK
}
