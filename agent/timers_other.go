//go:build !linux

package agent

// fineTimers returns false: coarse timers are known of Linux.
func fineTimers() (slack int, fine bool) { return 0, false }

// coarsenTimers does nothing.
func coarsenTimers() {}
