package ledger

import (
	"time"

	"github.com/stallspan/stallspan/internal/ledger/chain"
)

// gpuQueue is when a GPU works that is given the same work at each launch and does one after another. A thread that
// queues work and then waits for another thread's data leaves the GPU idle at the end of that wait, when the work is
// done: not at its beginning, where others read, but where they decode.
type gpuQueue struct {
	from, to time.Duration
	launches []time.Duration // in the order of time, from from to to; there is one more at from
}

// stretches calls do for each stretch in which the GPU works if a launch is that much work.
func (q *gpuQueue) stretches(each time.Duration, do func(from, to time.Duration)) {
	at, done := q.from, q.from+each
	for i := 0; i <= len(q.launches); i++ {
		next := q.to
		if i < len(q.launches) {
			next = q.launches[i]
		}
		do(at, min(done, next))
		at, done = next, max(done, next)+each
	}
}

// each finds how much work a launch is if the GPU works for so many seconds.
func (q *gpuQueue) each(busy float64) time.Duration {
	low, high := time.Duration(0), q.to-q.from
	for high-low > time.Microsecond {
		middle, sum := (low+high)/2, time.Duration(0)
		q.stretches(middle, func(from, to time.Duration) { sum += to - from })
		if sum.Seconds() < busy {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}

// split splits the pieces where the GPU runs out of work, and marks those before.
func (q *gpuQueue) split(pieces []chain.Piece, each time.Duration) (all []chain.Piece, queued []bool) {
	i := 0
	take := func(until time.Duration, works bool) {
		for ; i < len(pieces) && pieces[i].From < until; i++ {
			p := pieces[i]
			rest := p.To > until
			if rest {
				p.To, pieces[i].From = until, until
			}
			if p.To > p.From {
				all, queued = append(all, p), append(queued, works)
			}
			if rest {
				return
			}
		}
	}
	q.stretches(each, func(from, to time.Duration) {
		take(from, false)
		take(to, true)
	})
	take(q.to, false)
	return all, queued
}
