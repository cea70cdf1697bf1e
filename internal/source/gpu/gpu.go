// Package gpu reads NVIDIA GPUs through NVML, the library that comes with their driver.
//
// It is a stream: the driver keeps samples of the recent past, so it is asked once a second and what it gives becomes
// rows on a grid of its own, up to 1.3 s behind the present.
package gpu

import (
	"context"
	"errors"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// Options says which library is read and how fine the rows are.
type Options struct {
	Library  string        // libnvidia-ml.so.1 where the loader does not find it; "" for the loader's choice
	Interval time.Duration // between two rows; 0 means 100 ms
}

var (
	// ErrNotBuilt says that this binary was built without cgo, which NVML needs.
	ErrNotBuilt = errors.New("built without NVML: install a build with cgo to read NVIDIA GPUs")
	// ErrNoDriver says that this machine has no NVIDIA driver: its library libnvidia-ml.so.1 is not there.
	ErrNoDriver = errors.New("no NVIDIA driver: its library libnvidia-ml.so.1 is not there")
)

// Source is a sample.Stream of all NVIDIA GPUs of this machine.
type Source struct{ o Options }

var _ sample.Stream = (*Source)(nil)

// New prepares a source and touches no driver. It fails with ErrNotBuilt.
func New(o Options) (*Source, error) { return &Source{o}, nil }

// Run implements sample.Stream.
func (s *Source) Run(ctx context.Context, _ sample.Sink) { <-ctx.Done() }

// CatchUp implements sample.Stream.
func (s *Source) CatchUp(context.Context) {}

// Found is what Probe found.
type Found struct{ Driver, NVML string }

// Probe asks the driver what it has.
func Probe(context.Context, Options) (Found, error) { return Found{}, ErrNoDriver }
