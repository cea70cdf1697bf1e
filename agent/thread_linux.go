package agent

import "syscall"

// threadID returns the kernel's number of this thread.
func threadID() int { return syscall.Gettid() }
