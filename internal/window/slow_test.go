package window

import (
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

func TestApplyLimits(t *testing.T) {
	usual := &Baseline{Median: 90 * time.Millisecond, P95: 100 * time.Millisecond, Count: 7}
	for want, limits := range map[string]Limits{
		SlowThreshold: {Set: 100 * time.Millisecond, Baseline: usual},
		SlowBaseline:  {Set: time.Second, Baseline: usual},
		"":            {Set: time.Second, Baseline: usual, Factor: 6},
	} {
		r := &Report{Window: Window{Kind: ModelLoad, End: sample.Stamp{Mono: 502 * time.Millisecond}}}
		if r.ApplyLimits(limits); r.SlowReason != want || r.Slow != (want != "") || r.ExceedsLimit() != r.Slow {
			t.Errorf("%+v: slow %v by %q, want %q", limits, r.Slow, r.SlowReason, want)
		}
		after := map[string]time.Duration{SlowThreshold: 100 * time.Millisecond, SlowBaseline: 150 * time.Millisecond}[want]
		if r.SlowAfter != after {
			t.Errorf("%+v: slow after %v, want %v", limits, r.SlowAfter, after)
		}
	}
}

// A detected window is not slow by what its begin and its end leave open.
func TestApplyLimitsToOpenEnds(t *testing.T) {
	for open, want := range map[time.Duration]bool{0: true, 150 * time.Millisecond: true, 250 * time.Millisecond: false} {
		r := &Report{Window: Window{Kind: ModelLoad, Source: Detected, Open: open,
			End: sample.Stamp{Mono: 1100 * time.Millisecond}}}
		if r.ApplyLimits(Limits{Set: time.Second}); r.Slow != want {
			t.Errorf("1.1 s, %v open, limit 1 s: slow %v, want %v", open, r.Slow, want)
		}
	}
}
