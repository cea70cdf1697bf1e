//go:build !linux || !(amd64 || arm64)

package latency

import (
	"errors"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/schedule"
)

// Source cannot be made here.
type Source struct{}

// Jobs names the jobs of the scheduler's slots.
type Jobs interface {
	Tracing() schedule.Tracing
	JobIn(slot int) (name string, generation uint32)
}

// New returns an error.
func New(string) (*Source, error) {
	return nil, errors.New("how long disks take can be counted on Linux on amd64 and arm64 only")
}

// Local returns an Opener that returns an error.
func Local(string) Opener {
	return func(schedule.Tracing) (Tracing, error) {
		_, err := New("")
		return nil, err
	}
}

// NewFrom returns an error.
func NewFrom(Opener, Jobs, string) (*Source, error) { return New("") }

// Read does nothing.
func (*Source) Read(*sample.Sample) error { return nil }

// Refused knows nothing.
func (*Source) Refused() uint64 { return 0 }

// Close does nothing.
func (*Source) Close() error { return nil }
