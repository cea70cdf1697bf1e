//go:build !linux || !(amd64 || arm64)

package helper

import (
	"github.com/stallspan/stallspan/internal/source/latency"
	"github.com/stallspan/stallspan/internal/source/opens"
	"github.com/stallspan/stallspan/internal/source/schedule"
	"github.com/stallspan/stallspan/internal/trust"
)

// Separate does nothing: the agent keeps its capabilities.
func Separate(trust.Set) error { return nil }

// Inherit returns none.
func Inherit() (Helpers, error) { return Helpers{}, nil }

// Tracer cannot be had here.
type Tracer struct{}

// Open returns an error.
func (*Tracer) Open() (schedule.Tracing, error) {
	return schedule.Local("")()
}

// OpenLatency returns an error.
func (*Tracer) OpenLatency(with schedule.Tracing) (latency.Tracing, error) {
	return latency.Local("")(with)
}

// OpenOpens returns an error.
func (*Tracer) OpenOpens(with schedule.Tracing, o opens.Options) (opens.Tracing, error) {
	return opens.Local("")(with, o)
}

// Close does nothing.
func (*Tracer) Close() error { return nil }
