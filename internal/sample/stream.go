package sample

import "context"

// Stream is a source with a time axis of its own: a driver that keeps a buffer is asked now and then, and what it gives
// are readings of the recent past.
type Stream interface {
	// Run hands readings to sink on the caller's goroutine, each later than the one before, until ctx ends. What it
	// started has ended when it returns, save a call that the driver never answers. The name that it gives the sink is
	// that of the source. Call it once.
	Run(ctx context.Context, sink Sink)
	// CatchUp returns when everything that the device tells up to now has gone to the sink, or when ctx ends. Without a
	// Run under way, or without a device, it returns at once. It is safe for concurrent use, and many calls at once
	// cost the device one.
	CatchUp(ctx context.Context)
}
