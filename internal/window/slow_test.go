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
