package trust

import (
	"slices"
	"sync"
	"time"
)

// Bounds of a Rate.
const (
	maxLanes  = 256
	fineParts = 64 // of a period: how exactly it is known when something was taken
)

// Rate is an amount for each period, such as places or bytes. Clients have equal parts of it: the first ones leave the
// others theirs. So all together may take more, if some have taken their part before others come. It is safe for
// concurrent use.
type Rate struct {
	amount int
	fewest int // clients among which it is divided
	period time.Duration

	mu    sync.Mutex
	taken []taking // oldest first
}

type taking struct {
	client string
	at     time.Duration
	amount int
}

// NewRate returns so many places for each period. One client gets a quarter of them at most.
func NewRate(places int, period time.Duration) *Rate {
	return &Rate{amount: places, fewest: Share, period: period}
}

// NewWholeRate returns an amount for each period. One client gets everything while there is no other.
func NewWholeRate(amount int, period time.Duration) *Rate {
	return &Rate{amount: amount, fewest: 1, period: period}
}

// Take takes a place for a client at a moment, on any clock that does not go back. The error is ErrShare, or ErrFull if
// too many clients have taken some. The client "" is this program itself, which has the whole amount apart from others.
func (r *Rate) Take(client string, at time.Duration) error {
	client = Sharer(client)
	r.mu.Lock()
	defer r.mu.Unlock()
	left, err := r.left(client, at)
	switch {
	case err != nil:
		return err
	case left < 1:
		return ErrShare
	}
	r.add(client, 1, at)
	return nil
}

// Left returns how much a client may take.
func (r *Rate) Left(client string, at time.Duration) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	left, _ := r.left(client, at) // 0 with an error
	return max(0, left)
}

// Note notes that a client has taken something.
func (r *Rate) Note(client string, amount int, at time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.add(client, amount, at)
}

func (r *Rate) left(client string, at time.Duration) (int, error) {
	r.expire(at)
	sums := map[string]int{client: 0}
	for _, t := range r.taken {
		sums[t.client] += t.amount
	}
	own := sums[client]
	if client == "" {
		return r.amount - own, nil
	}
	delete(sums, "")
	if own == 0 && len(sums) > maxLanes {
		return 0, ErrFull
	}
	return max(1, r.amount/max(r.fewest, len(sums))) - own, nil
}

func (r *Rate) expire(at time.Duration) {
	r.taken = slices.DeleteFunc(r.taken, func(t taking) bool { return at-t.at >= r.period })
}

func (r *Rate) add(client string, amount int, at time.Duration) {
	r.expire(at)
	for i := len(r.taken) - 1; i >= 0 && at-r.taken[i].at < r.period/fineParts; i-- {
		if r.taken[i].client == client {
			r.taken[i].amount += amount
			return
		}
	}
	r.taken = append(r.taken, taking{client, at, amount})
}
