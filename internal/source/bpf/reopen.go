package bpf

import (
	"errors"
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

// reopening opens a Tracing again, after the process of the last one ended, or after a refusal. It does not wait:
// programs take a tenth of a second to load. Its owner locks it. Its zero value tries at once.
type reopening struct {
	coming   chan reopened // for one that is being opened; nil for none
	retry    time.Duration // when the next may be, on CLOCK_MONOTONIC
	refusals int           // in a row
}

// reopened is what was opened, or why it was not.
type reopened struct {
	tracing Tracing
	err     error
}

// later has the next attempts made as after an attempt at a moment that gave an error, or less than all.
func (r *reopening) later(now time.Duration, err error) {
	if errors.As(err, new(Away)) {
		r.retry = now + soon
		return
	}
	r.retry = now + delays[min(r.refusals, len(delays)-1)]
	r.refusals++
}

// now has the next attempt made at once.
func (r *reopening) now() { r.retry = 0 }

// next begins to open one at a moment, if an attempt is due. It returns what came of one that is over, once: done is
// whether there is that.
func (r *reopening) next(now time.Duration, open func() (Tracing, error)) (tracing Tracing, done bool, err error) {
	if r.coming == nil && now >= r.retry {
		coming := make(chan reopened, 1)
		r.coming = coming
		go func() { // close waits for it
			var n reopened
			if err := sample.Protect(func() { n.tracing, n.err = open() }); err != nil {
				n.err = err
			}
			coming <- n
		}()
	}
	select {
	case n := <-r.coming:
		r.coming = nil
		r.later(now, n.err)
		return n.tracing, true, n.err
	default:
		return nil, false, nil
	}
}

// close waits for the one that is being opened, and closes it.
func (r *reopening) close() {
	if r.coming == nil {
		return
	}
	if n := <-r.coming; n.err == nil {
		_ = n.tracing.Close()
	}
}
