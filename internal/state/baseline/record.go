package baseline

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/window"
)

// Record holds what is known of the windows of one key.
type Record struct {
	Durations []time.Duration `json:"durations_ns"`   // of the last MaxCount windows that were not slow, the newest last
	Slow      int             `json:"slow,omitempty"` // slow windows since the last one that was not
	Last      time.Time       `json:"last_seen"`      // end of the last window, in whole seconds
}

// learn adds a window. A slow one is counted, but its duration is not kept.
func (r *Record) learn(took time.Duration, slow bool, at time.Time) {
	if at = at.UTC().Truncate(time.Second); at.After(r.Last) {
		r.Last = at
	}
	if slow {
		r.Slow++
		return
	}
	r.Slow = 0
	r.Durations = append(r.Durations, took)
	if excess := len(r.Durations) - MaxCount; excess > 0 {
		r.Durations = slices.Delete(r.Durations, 0, excess)
	}
}

// Baseline returns the median and the p95 of the record, and whether it has enough windows to compare with.
func (r *Record) Baseline() (window.Baseline, bool) {
	n := len(r.Durations)
	return window.Baseline{Median: r.Median(), P95: r.P95(), Count: n}, n >= MinCount
}

// Median returns the median duration, or 0 without any.
func (r *Record) Median() time.Duration {
	n := len(r.Durations)
	if n == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(r.Durations))
	low, high := sorted[(n-1)/2], sorted[n/2]
	return low + (high-low)/2
}

// P95 returns the 95th percentile by the nearest rank, or 0 without any duration. Up to 19 durations, it is the
// longest.
func (r *Record) P95() time.Duration {
	n := len(r.Durations)
	if n == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(r.Durations))[(95*n+99)/100-1]
}

// check returns an error for a record that no version could have written.
func (r *Record) check(key Key) error {
	valid := r != nil && key != "" && r.Slow >= 0 && r.Slow <= math.MaxInt32 && len(r.Durations) <= MaxCount &&
		!slices.ContainsFunc(r.Durations, func(d time.Duration) bool { return d <= 0 })
	if !valid {
		return fmt.Errorf("its record of %.80q is invalid", key)
	}
	return nil
}
