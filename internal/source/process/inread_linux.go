package process

import "golang.org/x/sys/unix"

func init() {
	readCalls = []uint64{unix.SYS_READ, unix.SYS_PREAD64, unix.SYS_READV, unix.SYS_PREADV, unix.SYS_PREADV2}
}
