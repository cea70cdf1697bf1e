//go:build !linux

package check

func isCgroup2(string) bool { return false }
