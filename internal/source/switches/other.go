//go:build !linux

package switches

import (
	"errors"

	"github.com/stallspan/stallspan/internal/sample"
)

// Source cannot be made here.
type Source struct{}

var errLinux = errors.New("switches can be followed on Linux only")

// New returns an error.
func New() (*Source, error) { return nil, errLinux }

// Supported returns an error.
func Supported() error { return errLinux }

// Follow does nothing.
func (*Source) Follow(string, []int) error { return nil }

// Sync does nothing.
func (*Source) Sync(string, []int) error { return nil }

// Unfollow does nothing.
func (*Source) Unfollow(string) {}

// Read does nothing.
func (*Source) Read(*sample.Sample) error { return nil }

// Close does nothing.
func (*Source) Close() error { return nil }
