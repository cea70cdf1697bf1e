package sample

import "context"

// Stream is a source with its own time axis, such as a driver with a buffer of recent samples.
type Stream interface {
	// Run passes readings to sink in order of time, on the caller's goroutine, until ctx ends. When it returns, all its
	// goroutines have ended, except one in a call that the driver never answers. Call it once.
	Run(ctx context.Context, sink Sink)
	// CatchUp returns after all that the device has measured until now went to the sink, or when ctx ends. Without Run or
	// without a device it returns at once. It is safe for concurrent use; concurrent calls share one query of the device.
	CatchUp(ctx context.Context)
}
