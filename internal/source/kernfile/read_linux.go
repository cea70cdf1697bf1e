//go:build linux && (amd64 || arm64)

package kernfile

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// preadBrief is pread(2) without Go's preparation for a call that waits. That preparation wakes the runtime's monitor
// thread in a program that was idle, and the monitor then wakes every 20 us for as long as the program works.
func preadBrief(fd int, buf []byte, at int64) (int, error) {
	n, _, errno := unix.RawSyscall6(unix.SYS_PREAD64, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(buf))),
		uintptr(len(buf)), uintptr(at), 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
