//go:build !linux

package tcp

import "errors"

// Source reads nothing on this system.
type Source struct{}

// New returns a source.
func New() *Source { return &Source{} }

var errSystem = errors.New("sockets are read on Linux only")

// List returns an error.
func (*Source) List(func(*Socket)) error { return errSystem }

// Refresh returns an error.
func (*Source) Refresh(*Socket) (bool, error) { return false, errSystem }

// Close does nothing.
func (*Source) Close() {}

// MountID returns 0.
func MountID() int { return 0 }

// Namespace returns 0.
func Namespace() uint32 { return 0 }
