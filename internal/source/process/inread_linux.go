package process

import "golang.org/x/sys/unix"

// isRead knows the system calls whose first argument is a file that they read.
func isRead(number uint64) bool {
	switch number {
	case unix.SYS_READ, unix.SYS_PREAD64, unix.SYS_READV, unix.SYS_PREADV, unix.SYS_PREADV2:
		return true
	}
	return false
}
