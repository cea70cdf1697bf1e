package windows

import (
	"slices"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/trust"
	"github.com/stallspan/stallspan/internal/window"
)

// Windows are found by their ends, in whatever order they were reported.
func TestEndedSince(t *testing.T) {
	var all table
	for _, at := range []time.Duration{
		10 * time.Second, 30 * time.Minute, 10 * time.Minute, 30*time.Minute - time.Millisecond, time.Hour, 20 * time.Minute,
	} {
		all.retain(&window.Report{Window: window.Window{End: sample.Stamp{Mono: at}}}, time.Hour)
	}
	for name, c := range map[string]struct {
		since, now, last time.Duration
		count            int
	}{
		"all":                  {0, time.Hour, 10 * time.Second, 6},
		"within the last hour": {0, time.Hour + time.Minute, 10 * time.Minute, 5},
		"since one ended":      {30 * time.Minute, time.Hour, 30 * time.Minute, 2},
		"since the last one":   {time.Hour, time.Hour, time.Hour, 1},
		"after the last one":   {2 * time.Hour, 2 * time.Hour, 0, 0},
	} {
		var ends []time.Duration
		for r := range all.endedSince(c.since, c.now) {
			ends = append(ends, r.End.Mono)
		}
		if len(ends) != c.count || c.count > 0 && (ends[0] != time.Hour || slices.Min(ends) != c.last) {
			t.Errorf("%s: got %v, want %d from 1h down to %v", name, ends, c.count, c.last)
		}
	}
	for r := range all.endedSince(0, time.Hour) {
		if r.End.Mono != time.Hour {
			t.Errorf("got %v first, want the newest", r.End.Mono)
		}
		break
	}
}

// A report is kept for an hour after it was made, and not after the end of its window.
func TestKeptSinceReported(t *testing.T) {
	all := table{places: trust.NewPlaces(MaxOpen)}
	add := func(client string, end, reported time.Duration) {
		w := window.Window{Client: client, End: sample.Stamp{Mono: end}}
		all.retain(&window.Report{Window: w}, reported)
	}
	add("", time.Hour, time.Hour)
	add("", time.Minute, 90*time.Minute) // reported long after its end
	for _, c := range []struct {
		now  time.Duration
		kept int
	}{{2 * time.Hour, 2}, {2*time.Hour + 1, 1}, {150 * time.Minute, 1}, {150*time.Minute + 1, 0}} {
		if all.expire(c.now); len(all.ended) != c.kept {
			t.Errorf("after %v: got %d reports, want %d", c.now, len(all.ended), c.kept)
		}
	}
	// What was reported first goes first, where there is no room.
	end := func(n int) time.Duration { return time.Hour + time.Duration(n) }
	for n := range MaxOpen / trust.Share {
		add("a", end(n), end(n))
	}
	add("a", time.Minute, end(MaxEnded))
	add("a", time.Minute+1, end(MaxEnded))
	if n := len(all.ended); n != MaxOpen/trust.Share || all.ended[0].End.Mono != time.Minute || all.ended[2].at != end(2) {
		t.Errorf("got %d reports of a client, from %v, then %v; want %d from 1m0s, without the two that came first",
			n, all.ended[0].End.Mono, all.ended[2].at, MaxOpen/trust.Share)
	}
	for n := range MaxEnded {
		add("", end(n), end(MaxEnded+n))
	}
	add("", 2*time.Minute, end(2*MaxEnded))
	if n := len(all.ended); n != MaxEnded || all.ended[0].End.Mono != 2*time.Minute || all.ended[1].End.Mono != end(1) {
		t.Errorf("got %d reports, from %v, then %v; want %d from 2m0s, without the one that came first",
			n, all.ended[0].End.Mono, all.ended[1].End.Mono, MaxEnded)
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
			t.Fatalf("got %v of detected windows, want no finding", r.Findings)
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
