package schedule

import (
	"errors"
	"io"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// Away is an error of a process that is started again.
type Away string

func (a Away) Error() string { return string(a) }

// soon is the time between two attempts to open something of a process that is started again.
const soon = time.Second

// delays are the times from one attempt to the next after refusals: a policy of the machine may change.
var delays = [...]time.Duration{time.Minute, 10 * time.Minute, time.Hour}

// Reopening opens a Tracing again, of this package or of one that shares its maps: after the process of the last one
// ended, or after a refusal. It does not wait: programs take a tenth of a second to load. Its owner locks it. Its zero
// value tries at once.
type Reopening[T io.Closer] struct {
	coming   chan reopened[T] // for one that is being opened; nil for none
	retry    time.Duration    // when the next may be, on CLOCK_MONOTONIC
	refusals int              // in a row
	refused  error            // of the newest attempt, while nothing was opened before
}

// reopened is what was opened, or why it was not.
type reopened[T io.Closer] struct {
	tracing T
	err     error
}

// Refuse takes note of a first attempt at a moment that gave an error.
func (r *Reopening[T]) Refuse(now time.Duration, err error) {
	r.refused = err
	r.Later(now, err)
}

// Refused returns why nothing was opened so far; nil if something was.
func (r *Reopening[T]) Refused() error { return r.refused }

// Later has the next attempts made as after an attempt at a moment that gave an error, or less than all.
func (r *Reopening[T]) Later(now time.Duration, err error) {
	if errors.As(err, new(Away)) {
		r.retry = now + soon
		return
	}
	r.retry = now + delays[min(r.refusals, len(delays)-1)]
	r.refusals++
}

// Now has the next attempt made at once.
func (r *Reopening[T]) Now() { r.retry = 0 }

// Next begins to open one at a moment, if an attempt is due. It returns what came of one that is over, once: done is
// whether there is that.
func (r *Reopening[T]) Next(now time.Duration, open func() (T, error)) (tracing T, done bool, err error) {
	if r.coming == nil && now >= r.retry {
		coming := make(chan reopened[T], 1)
		r.coming = coming
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
		r.Later(now, n.err)
		if r.refused != nil && n.err != nil {
			r.refused = n.err
		}
		return n.tracing, true, n.err
	default:
		return tracing, false, nil
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
