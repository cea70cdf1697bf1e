package schedule

import (
	"io"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// retryAfter is the time between two attempts to open something again.
const retryAfter = time.Second

// Reopening opens a Tracing again, of this package or of one that shares its maps, after the process of the last one
// ended. It does not wait: programs take a tenth of a second to load. Its owner locks it.
type Reopening[T io.Closer] struct {
	coming chan reopened[T] // for one that is being opened; nil for none
	retry  time.Duration    // when the next may be, on CLOCK_MONOTONIC
}

// reopened is what was opened, or why it was not.
type reopened[T io.Closer] struct {
	tracing T
	err     error
}

// Next begins to open one at a moment, unless it does so already or has tried less than a second ago. It returns the
// one that was opened, once.
func (r *Reopening[T]) Next(now time.Duration, open func() (T, error)) (tracing T, ok bool) {
	if r.coming == nil && now >= r.retry {
		coming := make(chan reopened[T], 1)
		r.coming, r.retry = coming, now+retryAfter
		go func() { // Close waits for it
			var n reopened[T]
			if err := sample.Protect(func() { n.tracing, n.err = open() }); err != nil {
				n.err = err
			}
			coming <- n
		}()
	}
	select {
	case n := <-r.coming:
		r.coming = nil
		return n.tracing, n.err == nil
	default:
		return tracing, false
	}
}

// Close waits for the one that is being opened, and closes it.
func (r *Reopening[T]) Close() {
	if r.coming == nil {
		return
	}
	if n := <-r.coming; n.err == nil {
		_ = n.tracing.Close()
	}
}
