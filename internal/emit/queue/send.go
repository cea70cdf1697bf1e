package queue

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/stallspan/stallspan/internal/sample"
)

// maxThrottle bounds the pause that a backend may request: a header with a wrong date must not end the export.
const maxThrottle = 10 * time.Minute

// run sends batch after batch, in order, until the queue is closed and empty or ctx ends.
func (q *Queue[T]) run(ctx context.Context) {
	defer close(q.done)
	pauses := backoff.ExponentialBackOff{
		InitialInterval:     q.options.MinPause,
		MaxInterval:         q.options.MaxPause,
		Multiplier:          2,
		RandomizationFactor: 0.5, // so that the agents of a cluster do not return to a backend in step
	}
	retry := false
	for q.wait(ctx, retry) {
		batch := q.batch()
		err := q.send(ctx, batch)
		if retry = !q.finish(ctx, len(batch), err); !retry {
			pauses.Reset()
			continue
		}
		if q.options.OnRetry != nil {
			q.options.OnRetry(err)
		}
		pause := pauses.NextBackOff()
		var throttle *Throttle
		if errors.As(err, &throttle) {
			pause = max(pause, min(throttle.After, maxThrottle))
		}
		if q.sleep(ctx, pause, nil) {
			pauses.Reset()
		}
	}
}

// send calls Send. A batch with which it panics is refused: it would do so again.
func (q *Queue[T]) send(ctx context.Context, batch []T) (err error) {
	if failed := sample.Protect(func() { err = q.options.Send(ctx, batch) }); failed != nil {
		return &Refusal{Items: -1, Err: failed}
	}
	return err
}

// wait blocks until a batch is due and reports whether there is one. due is true for a batch that has waited before.
func (q *Queue[T]) wait(ctx context.Context, due bool) bool {
	first := time.Now() // when the oldest item was found
	for ctx.Err() == nil {
		q.mu.Lock()
		n, closing := len(q.items), q.closing
		urgent := closing || q.flushing > 0 || q.full()
		q.mu.Unlock()
		rest := q.options.Delay - time.Since(first)
		switch {
		case n == 0 && closing:
			return false
		case n == 0:
			due = false
			q.sleep(ctx, 0, q.ready)
			first = time.Now()
		case due || urgent || rest <= 0:
			return true
		default:
			q.sleep(ctx, rest, q.ready)
		}
	}
	return false
}

// sleep waits for d, or without end if d is 0, unless ready, a flush or ctx ends it. It reports whether a flush did.
func (q *Queue[T]) sleep(ctx context.Context, d time.Duration, ready <-chan struct{}) (flushed bool) {
	var over <-chan time.Time
	if d > 0 {
		over = time.After(d)
	}
	select {
	case <-over:
	case <-ready:
	case <-q.flush:
		return true
	case <-ctx.Done():
	}
	return false
}

// batch returns the oldest items. They stay in the queue until finish.
func (q *Queue[T]) batch() []T {
	q.mu.Lock()
	defer q.mu.Unlock()
	var batch []T
	bytes := 0
	for i := range q.items {
		bytes += q.items[i].size
		if i == q.options.MaxBatchItems || i > 0 && q.options.MaxBatchBytes > 0 && bytes > q.options.MaxBatchBytes {
			break
		}
		batch = append(batch, q.items[i].value)
	}
	q.inFlight = len(batch)
	return batch
}

// finish removes a batch of n items that was taken or refused. It reports false for a batch that must be sent again.
func (q *Queue[T]) finish(ctx context.Context, n int, err error) bool {
	var refusal *Refusal
	refused := 0
	if errors.As(err, &refusal) {
		refused = n
		if refusal.Items >= 0 {
			refused = min(refusal.Items, n)
		}
	}
	done := err == nil || refusal != nil
	q.remove(ctx, n, refused, done, err)
	if refused > 0 {
		q.lost(refused, err)
	}
	return done
}

func (q *Queue[T]) remove(ctx context.Context, n, refused int, done bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.inFlight, q.counts.Failing = 0, err
	if err != nil && (ctx.Err() == nil || q.counts.LastError == nil) { // an earlier error explains more than that of ctx
		q.counts.LastError = err
	}
	if !done {
		return
	}
	q.counts.Refused += uint64(refused)
	q.counts.Sent += uint64(n - refused)
	for i := range n {
		q.bytes -= q.items[i].size
		q.items[i] = item[T]{} // release the value: the array lives on
	}
	q.items = q.items[n:]
	if len(q.items) == 0 {
		q.items = nil // release the array that an outage made grow
	}
	q.announce()
}
