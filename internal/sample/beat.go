package sample

import (
	"context"
	"time"
)

// beat paces the sampling.
type beat interface {
	// wait reports true at the next beat, and false after the end of its context. Missed beats count as one.
	wait() bool
	stop()
}

// newBeat starts a beat with the best timer of the platform.
var newBeat = newTicking

// ticking is a beat with a timer of the Go runtime.
type ticking struct {
	*time.Ticker
	ctx context.Context
}

func newTicking(ctx context.Context, interval time.Duration) beat {
	return ticking{time.NewTicker(interval), ctx}
}

func (t ticking) wait() bool {
	select {
	case <-t.ctx.Done():
	case <-t.C:
	}
	return t.ctx.Err() == nil // if both were ready, select may have chosen the tick
}

func (t ticking) stop() { t.Stop() }
