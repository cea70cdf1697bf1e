package gpu

import (
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

const (
	reportInterval = time.Minute // between two reports of the same error
	maxReported    = 64          // errors that are remembered
)

// reports limits how often the same error is emitted.
type reports struct {
	lastReported map[string]time.Duration
	pending      sample.Problems
}

// add emits err with the next row, unless an error with the same key was emitted less than a minute ago.
func (r *reports) add(key string, err error, now time.Duration) bool {
	if at, ok := r.lastReported[key]; ok && now-at < reportInterval {
		return false
	}
	if r.lastReported == nil || len(r.lastReported) >= maxReported {
		r.lastReported = map[string]time.Duration{}
	}
	r.lastReported[key] = now
	r.pending.Add(err)
	return true
}

// take returns the errors to emit now, once.
func (r *reports) take() error {
	err := r.pending.Err()
	r.pending.Reset()
	return err
}
