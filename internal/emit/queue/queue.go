// Package queue is the bounded queue between the code that makes spans and log records and the output that sends them.
//
// The OpenTelemetry SDK's batch processors clear a batch after one failed export, and a Collector pipeline may refuse a
// batch for a while. This queue keeps a batch until it is taken or refused. When the queue is full, the oldest items
// are dropped. Every item is counted as sent, refused, dropped or waiting.
package queue

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
)

// Options configure a Queue.
type Options[T any] struct {
	// Send passes a batch on. One goroutine calls it, and the batch belongs to the callee. After an error the batch is
	// sent again, unless the error is a *Refusal.
	Send func(context.Context, []T) error

	MaxBytes      int           // of the waiting items, by the sizes given to Push
	MaxBatchItems int           // per call of Send
	MaxBatchBytes int           // per call of Send; 0 means no bound. One larger item is a batch of its own.
	Delay         time.Duration // for which a batch waits to fill up
	MinPause      time.Duration // before the first retry, plus or minus half of it at random
	MaxPause      time.Duration // the pauses double up to this one, plus or minus half of it at random

	OnRetry func(error)            // if not nil, called after a failed Send that will be retried
	OnLost  func(n int, why error) // if not nil, called for items that were dropped or refused
}

// ErrFull is the reason that OnLost gets for dropped items.
var ErrFull = errors.New("the queue is full")

var errClosed = errors.New("the queue is closed")

// Refusal is an error of Send that a retry does not change: the batch arrived, and some or all of it was refused.
type Refusal struct {
	Items int // that were refused; negative for the whole batch
	Err   error
}

func (r *Refusal) Error() string { return r.Err.Error() }
func (r *Refusal) Unwrap() error { return r.Err }

// Throttle is an error of Send that says how long to wait before the next try.
type Throttle struct {
	After time.Duration
	Err   error
}

func (t *Throttle) Error() string { return t.Err.Error() }
func (t *Throttle) Unwrap() error { return t.Err }

// Counts is what became of the pushed items.
type Counts struct {
	Sent, Dropped, Refused, Waiting uint64

	LastError error // the last error of Send, even if the retry succeeded
	Failing   error // the error of the newest batch; nil after a success
}

// Queue is safe for concurrent use. A nil *Queue drops everything and does nothing.
type Queue[T any] struct {
	options Options[T]

	ready chan struct{} // a batch may be due
	flush chan struct{} // a call of Flush or Close: end the pause
	done  chan struct{} // closed when the goroutine has ended

	mu       sync.Mutex
	cancel   context.CancelFunc // of Send; nil before Start
	items    []item[T]          // oldest first
	bytes    int                // of all items
	inFlight int                // how many of the oldest are with Send and cannot be dropped
	flushing int                // calls of Flush in progress
	closing  bool
	pushed   uint64
	settled  chan struct{} // closed and replaced whenever items leave the queue
	counts   Counts
}

type item[T any] struct {
	value T
	size  int // bytes
}

// New returns a queue that accepts items. Start begins to send them.
func New[T any](o Options[T]) *Queue[T] {
	return &Queue[T]{
		options: o,
		ready:   make(chan struct{}, 1),
		flush:   make(chan struct{}, 1),
		done:    make(chan struct{}),
		settled: make(chan struct{}),
	}
}

// Start begins to send on a goroutine of its own.
func (q *Queue[T]) Start() {
	if q == nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background()) //nolint:gosec // Close calls it
	q.mu.Lock()
	q.cancel = cancel
	q.mu.Unlock()
	go q.run(ctx)
}

// Push adds an item of about size bytes. It never blocks.
func (q *Queue[T]) Push(value T, size int) {
	if q == nil {
		return
	}
	q.mu.Lock()
	q.items = append(q.items, item[T]{value, size})
	q.bytes += size
	q.pushed++
	dropped := 0
	for q.bytes > q.options.MaxBytes && len(q.items) > q.inFlight {
		q.dropOldest()
		dropped++
	}
	if len(q.items) == 1 || q.full() {
		notify(q.ready)
	}
	q.mu.Unlock()
	if dropped > 0 {
		q.lost(dropped, ErrFull)
	}
}

// full reports whether a whole batch waits. q.mu is held.
func (q *Queue[T]) full() bool {
	o := &q.options
	return o.Delay == 0 || len(q.items) >= o.MaxBatchItems || o.MaxBatchBytes > 0 && q.bytes >= o.MaxBatchBytes
}

// dropOldest drops the oldest item that is not in flight. q.mu is held.
func (q *Queue[T]) dropOldest() {
	q.bytes -= q.items[q.inFlight].size
	copy(q.items[1:], q.items[:q.inFlight])
	q.items[0] = item[T]{} // release the value: the array lives on
	q.items = q.items[1:]
	q.counts.Dropped++
	q.announce()
}

// announce wakes the calls of Flush. q.mu is held.
func (q *Queue[T]) announce() {
	close(q.settled)
	q.settled = make(chan struct{})
}

func (q *Queue[T]) lost(n int, why error) {
	if q.options.OnLost != nil {
		q.options.OnLost(n, why)
	}
}

// Flush sends what waits now, without a delay or pause, and returns when it has left the queue or ctx ends.
func (q *Queue[T]) Flush(ctx context.Context) error {
	if q == nil {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.flushing++
	defer func() { q.flushing-- }()
	target := q.pushed
	notify(q.flush)
	for q.counts.Sent+q.counts.Refused+q.counts.Dropped < target {
		settled := q.settled
		q.mu.Unlock()
		var err error
		select {
		case <-settled:
		case <-q.done:
			err = errClosed
		case <-ctx.Done():
			err = ctx.Err()
		}
		q.mu.Lock()
		if err != nil {
			return err
		}
	}
	return nil
}

// Close sends, and retries, until the queue is empty or ctx ends. What is left then stays in Counts as waiting.
func (q *Queue[T]) Close(ctx context.Context) {
	if q == nil {
		return
	}
	q.mu.Lock()
	q.closing = true
	cancel := q.cancel
	q.mu.Unlock()
	if cancel == nil {
		return // never started
	}
	notify(q.flush)
	defer context.AfterFunc(ctx, cancel)()
	<-q.done
	cancel()
}

// Counts returns what became of the items up to now.
func (q *Queue[T]) Counts() Counts {
	if q == nil {
		return Counts{}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	c := q.counts
	c.Waiting = uint64(len(q.items))
	return c
}

// Bytes returns the size of the waiting items.
func (q *Queue[T]) Bytes() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.bytes
}

// notify leaves a signal unless there is one already.
func notify(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

var (
	keyValueBytes = int(reflect.TypeFor[attribute.KeyValue]().Size())
	stringBytes   = int(reflect.TypeFor[string]().Size())
)

// AttributeBytes estimates the memory of attributes. It errs on the large side: text counts for each attribute, though
// many attributes share theirs.
func AttributeBytes(attrs []attribute.KeyValue) int {
	n := len(attrs) * keyValueBytes
	for i := range attrs {
		switch v := attrs[i].Value; v.Type() {
		case attribute.STRING:
			n += len(v.AsString())
		case attribute.STRINGSLICE:
			for _, text := range v.AsStringSlice() {
				n += stringBytes + len(text)
			}
		}
	}
	return n
}
