//go:build !linux

package agent

// threadID returns 0: the number is only used with the scheduler of Linux.
func threadID() int { return 0 }
