package export

import (
	"context"
	"errors"
	"time"
)

// run is the goroutine of the queue.
func (q *line[T]) run(ctx context.Context) {
	defer close(q.done)
	var pause pauses
	again := false // the batch is due already
	for q.gather(ctx, again) {
		batch := q.take()
		err := q.export(ctx, batch)
		if again = !q.settle(ctx, len(batch), err); !again {
			pause.reset()
			continue
		}
		if q.sleep(ctx, pause.next(err), nil) {
			pause.reset()
		}
	}
}

// gather waits until a batch is due; false when there will be none any more. Signals are mere hints to look again.
func (q *line[T]) gather(ctx context.Context, due bool) bool {
	first := time.Now() // when the oldest was seen
	for ctx.Err() == nil {
		q.mu.Lock()
		n, closing := len(q.items), q.closing
		urgent := closing || q.waiting > 0 || n >= maxBatchSpans || q.bytes >= maxBatchBytes
		q.mu.Unlock()
		switch {
		case n == 0 && closing:
			return false
		case n == 0:
			due = false
			q.sleep(ctx, 0, q.ready)
			first = time.Now()
		case due || urgent || time.Since(first) >= batchDelay:
			return true
		default:
			q.sleep(ctx, batchDelay-time.Since(first), q.ready)
		}
	}
	return false
}

// sleep waits for d, or without end when d is 0, until ready or somebody's hurry cuts it short. It says whether it
// was the hurry.
func (q *line[T]) sleep(ctx context.Context, d time.Duration, ready <-chan struct{}) (hurried bool) {
	var over <-chan time.Time
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-over:
	case <-ready:
	case <-q.hurry:
		return true
	case <-ctx.Done():
	}
	return false
}

// take gives the oldest, which stay in the queue until they are settled.
func (q *line[T]) take() []T {
	q.mu.Lock()
	defer q.mu.Unlock()
	var batch []T
	bytes := 0
	for i := range q.items {
		bytes += q.items[i].size
		if i == maxBatchSpans || i > 0 && bytes > maxBatchBytes {
			break
		}
		batch = append(batch, q.items[i].item)
	}
	q.sending = len(batch)
	return batch
}

// settle removes a batch that is over with, and says so; one that failed is there to be sent again.
func (q *line[T]) settle(ctx context.Context, n int, err error) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sending, q.last = 0, err
	if err != nil && (ctx.Err() == nil || q.count.err == nil) { // being cut off explains less than what was before
		q.count.err = err
	}
	refused := 0
	var refusal *refusal
	switch {
	case errors.As(err, &refusal):
		if refused = refusal.spans; refused < 0 {
			refused = n
		}
		refused = min(refused, n)
	case err != nil:
		return false
	}
	q.count.refused += uint64(refused)
	q.count.exported += uint64(n - refused)
	for i := range n {
		q.bytes -= q.items[i].size
		q.items[i] = entry[T]{}
	}
	q.items = q.items[n:]
	if len(q.items) == 0 {
		q.items = nil // whatever an outage made it grow to
	}
	q.announce()
	return true
}
