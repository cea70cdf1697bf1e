package process

import "golang.org/x/sys/unix"

func init() { waitCalls = []uint64{unix.SYS_WAIT4, unix.SYS_WAITID} }
