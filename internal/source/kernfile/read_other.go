//go:build !linux || !(amd64 || arm64)

package kernfile

import "syscall"

func preadBrief(fd int, buf []byte, at int64) (int, error) { return syscall.Pread(fd, buf, at) }
