package explain

import (
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/test/windowtest"
)

// TestDurationInFinding: the finding of a slow window begins with why it is slow.
func TestDurationInFinding(t *testing.T) {
	usual := &window.Baseline{Median: 90 * time.Millisecond, P95: 100 * time.Millisecond, Count: 7}
	for want, limits := range map[string]window.Limits{
		"It took 502 ms, over the configured limit of 100 ms: the GPU was busy": {Set: 100 * time.Millisecond, Baseline: usual},
		"It took 502 ms where 100 ms is usual (p95 of 7 loads): the GPU was":    {Set: time.Second, Baseline: usual},
		"The GPU was busy": {Set: time.Second, Baseline: usual, Factor: 6},
	} {
		r := &window.Report{Facts: window.Facts{GPUIDs: []string{"gpu0"}}, Window: window.Window{Kind: window.ModelLoad, End: sample.Stamp{Mono: 502 * time.Millisecond}}}
		if r.ApplyLimits(limits); !strings.HasPrefix(Finding(r), want) {
			t.Errorf("%q, want %q", Finding(r), want)
		}
	}
}

// TestWholeMachine: without a GPU the CPU time of the whole machine is of no particular program. No verdict uses it.
func TestWholeMachine(t *testing.T) {
	for _, test := range []struct {
		cpu, waited time.Duration
		own, all    window.Verdict
	}{
		{90 * time.Millisecond, 0, window.CPUBound, window.Unknown},
		{40 * time.Millisecond, 40 * time.Millisecond, window.Mixed, window.Unknown},
		{5 * time.Millisecond, 90 * time.Millisecond, window.StorageBound, window.StorageBound},
		{5 * time.Millisecond, 5 * time.Millisecond, window.Unknown, window.Unknown},
	} {
		m := windowtest.New(t, false)
		w := m.Begin(window.Epoch)
		for range 20 {
			m.Step(0, test.waited, test.cpu)
		}
		if own := m.Report(w); own.Verdict != test.own {
			t.Errorf("a process: %s, want %s: %s", own.Verdict, test.own, Finding(own))
		}
		m.End(&w)
		info := m.Info()
		info.Scope = window.Host
		all := window.Make(m.History, &w, info)
		if all.Verdict != test.all || all.Verdict == window.Unknown && all.Speedup != 0 {
			t.Errorf("the machine: %s, speed-up %v, want %s: %s", all.Verdict, all.Speedup, test.all, Finding(all))
		}
		if strings.Contains(Finding(all), "program") {
			t.Errorf("the finding of a machine is about a program: %s", Finding(all))
		}
	}
}
