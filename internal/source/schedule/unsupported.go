//go:build !linux || !(amd64 || arm64)

package schedule

import (
	"errors"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/tcp"
)

// Source cannot be made here.
type Source struct{}

// New returns an error.
func New(string) (*Source, error) {
	return nil, errors.New("the scheduler can be followed on Linux on amd64 and arm64 only")
}

// Local returns an Opener that returns an error.
func Local(string) Opener {
	return func() (Tracing, error) {
		_, err := New("")
		return nil, err
	}
}

// NewFrom returns an error.
func NewFrom(Opener) (*Source, error) { return New("") }

// Follow does nothing.
func (*Source) Follow(string, []int) error { return nil }

// Sync does nothing.
func (*Source) Sync(string, []int) error { return nil }

// Unfollow does nothing.
func (*Source) Unfollow(string) {}

// EachRan knows nothing.
func (*Source) EachRan(func(int, bool)) bool { return false }

// EachMoved knows nothing.
func (*Source) EachMoved(uint64, func(string)) {}

// EachConnection knows nothing.
func (*Source) EachConnection(func(*tcp.Change)) bool { return false }

// Read does nothing.
func (*Source) Read(*sample.Sample) error { return nil }

// Close does nothing.
func (*Source) Close() error { return nil }

// Tracing returns nil.
func (*Source) Tracing() Tracing { return nil }

// JobIn knows no job.
func (*Source) JobIn(int) (string, uint32) { return "", 0 }
