//go:build linux

package main

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/lab/scenario"
)

func TestRerunsThatDifferAreVoid(t *testing.T) {
	makes := func(b, ofOthers float64) []*result {
		return []*result{
			{Cold: true, Seconds: 4, Truth: scenario.Parts{Storage: 2, CPU: 2}},
			{Seconds: 2, Foreign: ofOthers}, {Seconds: b},
		}
	}
	for _, c := range []struct {
		b, others float64
		void      bool
	}{{2.1, 0, false}, {2.5, 0, true}, {2, 0.3, true}} {
		results := makes(c.b, c.others)
		rerun(results, true)
		if got := results[0].VoidSpeedup != ""; got != c.void {
			t.Errorf("reruns of 2 and %v s, %v by others: got void %v, want %v", c.b, c.others, got, c.void)
		}
		if want := 8 / (2 + c.b); math.Abs(results[0].Measured-want) > 1e-9 {
			t.Errorf("got a speed-up of %v, want %v", results[0].Measured, want)
		}
	}
}

// An unknown wait for the network is a wrong verdict only where the scheduler's events were there.
func TestUnseenNetwork(t *testing.T) {
	for _, c := range []struct {
		r    result
		want bool
	}{
		{result{Label: window.NetworkBound, Verdict: window.Unknown, Evidence: sampled}, true},
		{result{Label: window.NetworkBound, Verdict: window.Unknown, Evidence: schedule}, false},
		{result{Label: window.NetworkBound, Verdict: window.StorageBound, Evidence: sampled}, false},
		{result{Label: window.CPUBound, Verdict: window.Unknown, Evidence: sampled}, false},
	} {
		if got := c.r.unseen(); got != c.want {
			t.Errorf("%s, %s, %s: got %v, want %v", c.r.Label, c.r.Verdict, c.r.Evidence, got, c.want)
		}
	}
}

func TestVoidWindowsCountNowhere(t *testing.T) {
	s := sum([]*result{
		{Label: window.GPUBound, Verdict: window.StorageBound, Error: 0.5},
		{Label: window.GPUBound, Verdict: window.StorageBound, Error: 0.9, Void: "shorter"},
		{Label: window.GPUBound, Verdict: window.GPUBound, Error: 0.1},
		{Verdict: window.CPUBound, Error: 0.2},
	})
	if s.falseStorage != 1 || len(s.wrong) != 1 || s.counted != 2 || len(s.ledger) != 3 || s.void != 1 {
		t.Errorf("got %+v, want one wrong verdict of two, and three ledgers", s)
	}
	if s.recall[window.GPUBound] != 0.5 || s.precision[window.StorageBound] != 0 {
		t.Errorf("got recall %v, precision %v, want 0.5 and 0", s.recall, s.precision)
	}
}

func TestASeedMakesTheSameJobs(t *testing.T) {
	names := map[string]bool{}
	for _, e := range entries() {
		if names[e.name] {
			t.Errorf("two jobs are named %s", e.name)
		}
		names[e.name] = true
		a, b, c := e.made(1), e.made(1), e.made(2)
		if a.String() != b.String() {
			t.Errorf("%s: got another job of the same seed", e.name)
		}
		if a.String() == c.String() {
			t.Errorf("%s: got the same job of another seed", e.name)
		}
		if _, err := os.Stat(filepath.Join("programs", a.Program)); err != nil {
			t.Error(err)
		}
	}
}
