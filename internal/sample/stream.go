package sample

import (
	"context"
	"sync"
	"time"
)

// Stream is a source with its own time axis, such as a driver with a buffer of recent samples.
type Stream interface {
	// Run passes readings to sink in order of time, on the caller's goroutine, until ctx ends. When it returns, all its
	// goroutines have ended, except one in a call that the driver never answers. Call it once.
	Run(ctx context.Context, sink Sink)
	// CatchUp returns after all that the device has measured until now went to the sink, or when ctx ends. Without Run or
	// without a device it returns at once. It is safe for concurrent use; concurrent calls share one query of the device.
	CatchUp(ctx context.Context)
}

const (
	minRow     = 5 * time.Millisecond // between a row of the grid and one that is wanted earlier
	maxCatchUp = 30 * time.Second     // of rows at once, after this process was suspended
)

// Grid is the time axis of a stream's rows.
type Grid struct {
	At       Stamp         // of the newest row; before the first, when the stream began
	Interval time.Duration // between two rows
	Begun    bool          // rows were wanted before
}

// Rows emits the rows up to a time that is not after now, each with its time and how much later that is than the row
// before. The first one makes devices known at once. With partial set, the last one is early.
func (g *Grid) Rows(now Stamp, until time.Duration, partial bool, emit func(at Stamp, step time.Duration)) {
	row := func(step time.Duration) {
		g.At = g.At.Next(now, step)
		emit(g.At, step)
	}
	if first := until - g.At.Mono; !g.Begun && first > 0 {
		row(first)
	}
	g.Begun = true
	step := g.Interval
	if behind := until - g.At.Mono; behind > maxCatchUp {
		step += (behind - maxCatchUp).Truncate(g.Interval)
	}
	for ; g.At.Mono+step <= until; step = g.Interval {
		row(step)
	}
	if rest := until - g.At.Mono; partial && rest >= minRow {
		row(rest)
	}
}

// Rounds are those of a stream that looks at its device again and again. Callers wait for the next one. It is safe for
// concurrent use; the zero value is ready, and has no rounds yet.
type Rounds struct {
	mu      sync.Mutex
	running bool          // a round may pass readings to the sink
	next    chan struct{} // closed at the end of the next round; nil if no caller waits for it
	wake    chan struct{} // buffer of one: the next round is wanted soon
}

// CatchUp waits for the end of a round that begins after the call, or for ctx. Without rounds it returns at once.
func (r *Rounds) CatchUp(ctx context.Context) {
	r.mu.Lock()
	if !r.running {
		r.mu.Unlock()
		return
	}
	if r.next == nil {
		r.next = make(chan struct{})
	}
	next := r.next
	r.mu.Unlock()
	r.WakeUp()
	select {
	case <-next:
	case <-ctx.Done():
	}
}

// WakeUp has the next round begin soon.
func (r *Rounds) WakeUp() {
	select {
	case r.woken() <- struct{}{}:
	default:
	}
}

// Pause waits until the next round is due or wanted, or other has a value, which is not before earliest. Times are
// those of Stamp.Mono.
func (r *Rounds) Pause(ctx context.Context, due, earliest time.Duration, other <-chan struct{}) {
	timer := time.NewTimer(due - Now().Mono)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return
	case <-timer.C:
		return
	case <-r.woken():
	case <-other:
	}
	timer.Reset(earliest - Now().Mono)
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

func (r *Rounds) woken() chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.wake == nil {
		r.wake = make(chan struct{}, 1)
	}
	return r.wake
}

// TakeWaiters returns the channel to close after the round that begins now, or nil.
func (r *Rounds) TakeWaiters() chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := r.next
	r.next = nil
	return next
}

// SetRunning sets whether rounds pass readings to the sink. If not, it releases the callers that wait for one.
func (r *Rounds) SetRunning(running bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running = running
	if !running && r.next != nil {
		close(r.next)
		r.next = nil
	}
}
