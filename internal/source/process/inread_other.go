//go:build !linux

package process

func isRead(uint64) bool { return false }
