package sample

import (
	"context"
	"time"
)

// beat paces the sampling.
type beat interface {
	// wait returns true at the next beat, and false once its context has ended. Beats that nobody waited for are one.
	wait() bool
	stop()
}

// ticking is a beat by Go's own timers.
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
	return t.ctx.Err() == nil // both may have been ready, and the tick chosen
}

func (t ticking) stop() { t.Stop() }
