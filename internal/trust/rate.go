package trust

import (
	"slices"
	"sync"
	"time"
)

// Rate is a number of places that are free again after a period. It is safe for concurrent use.
type Rate struct {
	max    int
	period time.Duration

	mu    sync.Mutex
	taken []place // oldest first
}

type place struct {
	client string
	at     time.Duration
}

// NewRate returns so many places for each period.
func NewRate(places int, period time.Duration) *Rate { return &Rate{max: places, period: period} }

// Take takes a place for a client at a moment, on any clock that does not go back. The error is that of Places.Take.
func (r *Rate) Take(client string, at time.Duration) error {
	client = Sharer(client)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.taken = slices.DeleteFunc(r.taken, func(p place) bool { return at-p.at >= r.period })
	if len(r.taken) >= r.max {
		return ErrFull
	}
	if client != "" {
		own := 0
		for _, p := range r.taken {
			if p.client == client {
				own++
			}
		}
		if own >= max(1, r.max/Share) {
			return ErrShare
		}
	}
	r.taken = append(r.taken, place{client, at})
	return nil
}
