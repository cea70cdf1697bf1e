//go:build !linux || !(amd64 || arm64)

package schedule

import (
	"errors"

	"github.com/stallspan/stallspan/internal/sample"
)

// Source cannot be made here.
type Source struct{}

// New returns an error.
func New(string) (*Source, error) {
	return nil, errors.New("the scheduler can be followed on Linux on amd64 and arm64 only")
}

// NewFor returns an error.
func NewFor(root string, _ Owner) (*Source, error) { return New(root) }

// Follow does nothing.
func (*Source) Follow(string, []int) error { return nil }

// Sync does nothing.
func (*Source) Sync(string, []int) error { return nil }

// Unfollow does nothing.
func (*Source) Unfollow(string) {}

// EachRan knows nothing.
func (*Source) EachRan(func(int)) bool { return false }

// Read does nothing.
func (*Source) Read(*sample.Sample) error { return nil }

// Close does nothing.
func (*Source) Close() error { return nil }
