package windows

import (
	"slices"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
)

func TestEndedSince(t *testing.T) {
	var all table
	for _, at := range []time.Duration{
		10 * time.Second, 10 * time.Minute, 30 * time.Minute, 30*time.Minute - time.Millisecond, time.Hour,
	} {
		all.retain(&window.Report{Window: window.Window{End: sample.Stamp{Mono: at}}})
	}
	for name, c := range map[string]struct{ since, now, last time.Duration }{
		"all":                  {0, time.Hour, 10 * time.Second},
		"within the last hour": {0, time.Hour + time.Minute, 10 * time.Minute},
		"since one ended":      {30 * time.Minute, time.Hour, 30*time.Minute - time.Millisecond},
		"since the last one":   {time.Hour, time.Hour, time.Hour},
		"after the last one":   {2 * time.Hour, 2 * time.Hour, 0},
	} {
		var ends []time.Duration
		for r := range all.endedSince(c.since, c.now) {
			ends = append(ends, r.End.Mono)
		}
		if len(ends) > 0 && (ends[0] != time.Hour || slices.Min(ends) != c.last) || (len(ends) == 0) != (c.last == 0) {
			t.Errorf("%s: got %v, want those from 1h down to %v", name, ends, c.last)
		}
	}
	for r := range all.endedSince(0, time.Hour) {
		if r.End.Mono != time.Hour {
			t.Errorf("got %v first, want the newest", r.End.Mono)
		}
		break
	}
}

// Memory grows from epoch to epoch: detected ones do not count, and do not disturb those that were announced.
func TestGrowthWithoutDetected(t *testing.T) {
	var all table
	epoch := func(source window.Source, n int, used float64) *window.Report {
		start := time.Duration(n) * time.Minute
		r := &window.Report{Window: window.Window{Kind: window.Epoch, Run: "train", Source: source,
			Start: sample.Stamp{Mono: start}, End: sample.Stamp{Mono: start + time.Minute}}}
		use := window.GPUUse{ID: "GPU-1", Limits: history.GPULimits{Memory: 80 << 30}}
		use.Means.Set(history.MemoryUsed, used)
		r.Uses = []window.GPUUse{use}
		all.learn(r)
		return r
	}
	for n := range 6 {
		if r := epoch(window.Detected, n, float64(n)*1e9); r.Finding(window.MemoryGrows) != nil {
			t.Fatalf("got %v of detected epochs, want no finding", r.Findings)
		}
	}
	var last *window.Report
	for n := range 6 {
		last = epoch(window.Announced, n, float64(n)*1e9)
		epoch(window.Detected, n, 0)
	}
	if last.Finding(window.MemoryGrows) == nil {
		t.Error("got no finding of announced epochs, want one")
	}
}
