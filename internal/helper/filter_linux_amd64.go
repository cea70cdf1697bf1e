package helper

import "golang.org/x/sys/unix"

const (
	auditArch = unix.AUDIT_ARCH_X86_64 // calls of the x32 ABI have numbers of their own, which no rule has
	statAt    = unix.SYS_NEWFSTATAT
)
