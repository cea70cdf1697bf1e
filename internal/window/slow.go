package window

import "time"

// Reasons for which a window is slow, of the registry's stallspan.slowness.reason. If several hold, the first in this
// list counts: a configured limit comes before the baseline.
const (
	SlowThreshold = "threshold"     // it took longer than the configured limit
	SlowBaseline  = "baseline"      // it took longer than such windows usually do
	SlowStorage   = "storage_stall" // it lost over half of its GPU time to storage
)

// Baseline is how long such windows usually take on this machine, exact over the last Count that it learned.
type Baseline struct {
	Median time.Duration `json:"median"`
	P95    time.Duration `json:"p95"`
	Count  int           `json:"count"` // of windows
}

// Limit is the duration from which a window is slow: factor times P95. 0 stands for SlowFactor.
func (b Baseline) Limit(factor float64) time.Duration {
	if factor == 0 {
		factor = SlowFactor
	}
	return time.Duration(factor * float64(b.P95))
}

// Limits are how long a window may take. The zero value has no limit.
type Limits struct {
	Set      time.Duration `json:"set,omitempty"`    // the configured limit; 0 without one
	Factor   float64       `json:"factor,omitempty"` // how many times the usual P95 a window may take; 0 for SlowFactor
	Baseline *Baseline     `json:"usual,omitempty"`  // nil if too few windows are known; the key is its old name
}

// ApplyLimits marks the window slow if it took longer than its limits, whatever the begin and the end of a detected one
// leave open. A window that is still open can only take longer.
func (r *Report) ApplyLimits(l Limits) {
	r.Limit, r.Baseline = l.Set, l.Baseline
	took := r.Duration() - r.Open/2
	switch {
	case l.Set > 0 && took > l.Set:
		r.SlowReason, r.SlowAfter = SlowThreshold, l.Set
	case l.Baseline != nil && took > l.Baseline.Limit(l.Factor):
		r.SlowReason, r.SlowAfter = SlowBaseline, l.Baseline.Limit(l.Factor)
	default:
		return
	}
	r.Slow = true
	r.addPending()
}

// ExceedsLimit reports whether the window is slow by its duration, whatever it waited for.
func (r *Report) ExceedsLimit() bool {
	return r.SlowReason == SlowThreshold || r.SlowReason == SlowBaseline
}
