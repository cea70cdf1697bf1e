package window

import (
	"fmt"
	"strings"
	"time"
)

// Reasons for which a window counts as slow, of the registry's stallspan.slowness.reason. Where several hold, the first
// of these is given: what a person has set comes before what is usual, and both say more than that it waited.
const (
	SlowThreshold = "threshold"     // it took longer than the limit that was set
	SlowBaseline  = "baseline"      // it took longer than windows like it usually do
	SlowStorage   = "storage_stall" // it lost over half of its GPU time to storage
)

// Baseline is how long windows like this one take here: exact over the last Count of them that were not slow.
type Baseline struct {
	Median time.Duration `json:"median"`
	P95    time.Duration `json:"p95"`
	Count  int           `json:"count"` // of windows
}

// Limit is how long a window may take before it is slow: factor times P95, 0 for SlowFactor.
func (u Baseline) Limit(factor float64) time.Duration {
	if factor == 0 {
		factor = SlowFactor
	}
	return time.Duration(factor * float64(u.P95))
}

// SlowFactor is how many times P95 a window may take before it is slow, where nothing else is set.
const SlowFactor = 1.5

// Limits say how long a window may take. The zero value knows no limit.
type Limits struct {
	Set      time.Duration `json:"set,omitempty"`    // by a person; 0 for none
	Factor   float64       `json:"factor,omitempty"` // how many times the usual P95 a window may take; 0 for SlowFactor
	Baseline *Baseline     `json:"usual,omitempty"`  // nil if too few windows are known
}

// Took marks the window slow where it took longer than its limits, and says so in its finding. What it finds of a window
// that is still open holds already.
func (r *Report) Took(l Limits) {
	r.Baseline = l.Baseline
	took := r.Duration()
	switch {
	case l.Set > 0 && took > l.Set:
		r.late(SlowThreshold, ", over the limit of "+Short(l.Set.Seconds())+" that was set")
	case l.Baseline != nil && took > l.Baseline.Limit(l.Factor):
		r.late(SlowBaseline, fmt.Sprintf(" where %s is usual (p95 of %s)", Short(l.Baseline.P95.Seconds()),
			count(uint64(l.Baseline.Count), r.noun())))
	}
}

func (r *Report) late(reason, than string) {
	r.Slow, r.SlowReason = true, reason
	r.tellFailing()
	rest, found := strings.CutPrefix(r.Finding, "The ")
	if found {
		rest = "the " + rest
	}
	r.Finding = "It took " + Short(r.Duration().Seconds()) + than + ": " + rest
}

// LastedTooLong says that the window is slow by its duration, whatever it waited for.
func (r *Report) LastedTooLong() bool {
	return r.SlowReason == SlowThreshold || r.SlowReason == SlowBaseline
}

// GPULost says that a GPU of the window could not be read for a part of it.
func (r *Report) GPULost() bool { return r.unread != "" }

// Unwatched says that for so much of the window nothing was read that it has no verdict.
func (r *Report) Unwatched() bool { return r.gap }

// noun is what the windows of its kind are called.
func (r *Report) noun() string {
	switch r.Kind {
	case ModelLoad:
		return "load"
	case Epoch:
		return "epoch"
	}
	return "window"
}
