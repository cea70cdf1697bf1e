//go:build !linux || !(amd64 || arm64)

package opens

import (
	"errors"
	"time"

	"github.com/stallspan/stallspan/internal/source/schedule"
)

// Source cannot be made here.
type Source struct{}

// Jobs names the jobs of the scheduler's slots.
type Jobs interface {
	Tracing() schedule.Tracing
	JobIn(slot int) (name string, generation uint32)
}

var errUnsupported = errors.New("opens of files can be reported on Linux on amd64 and arm64 only")

// Local returns an Opener that returns an error.
func Local(string) Opener {
	return func(schedule.Tracing, Options) (Tracing, error) { return nil, errUnsupported }
}

// Supported returns an error.
func Supported(string) error { return errUnsupported }

// New returns an error.
func New(Opener, Jobs, Options) (*Source, error) { return nil, errUnsupported }

// EachOpened knows nothing.
func (*Source) EachOpened(func(string)) {}

// Take knows nothing.
func (*Source) Take(string, time.Duration, func(*Event)) bool { return false }

// Close does nothing.
func (*Source) Close() error { return nil }
