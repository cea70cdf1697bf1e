//go:build !linux

package identity

import "testing"

func foreign(t *testing.T, _ string, _ func()) {
	t.Helper()
	t.Skip("needs Linux")
}
