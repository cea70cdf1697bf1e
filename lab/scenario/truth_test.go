package scenario

import (
	"math"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/lab/pipeline"
	"github.com/stallspan/stallspan/test/slowdisk"
)

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9 }

func TestTruth(t *testing.T) {
	const s = time.Second
	ran := &pipeline.Truth{
		Duration: 4 * s,
		Busy:     s,
		Read:     2 * s,
		Decode:   s / 2,
		Write:    s / 4,
		Sync:     s / 8,
		Other:    s / 8,
		Steps:    9,
	}
	again := &pipeline.Truth{Duration: 2 * s, Busy: s, Read: s / 4, Decode: s / 2, Write: s / 8}
	got := truth(4.1, &Plan{}, ran, again)
	want := Parts{Busy: 1, Storage: 1.75 + 0.125, CPU: 0.5 + 0.25, Other: 4.1 - 1 - 1.875 - 0.75}
	if !near(got.Busy, want.Busy) || !near(got.Storage, want.Storage) || !near(got.CPU, want.CPU) ||
		!near(got.Other, want.Other) {
		t.Errorf("%+v, want %+v", got.Parts, want)
	}
	if got.Speedup != 2 || !near(got.Unexplained, 0.125) || got.Verdict != "" {
		t.Errorf("speed-up %v, %v s unexplained, %q", got.Speedup, got.Unexplained, got.Verdict)
	}
	if alone := truth(4.1, &Plan{}, ran, nil); alone.Storage != 0 || !near(alone.CPU, 2.5) || alone.Speedup != 0 {
		t.Errorf("without a rerun: %+v", alone.Parts)
	}
}

// When some workers of a load end early, the work of the others is the work of the load.
func TestTruthOfALoad(t *testing.T) {
	const s = time.Second
	ran := &pipeline.Truth{Duration: 4 * s, Read: 2400 * time.Millisecond, Decode: 600 * time.Millisecond, Other: s}
	got := truth(4, &Plan{Load: "model"}, ran, &pipeline.Truth{Duration: s, Decode: s})
	if !near(got.Storage, 3.2) || !near(got.CPU, 0.8) || !near(got.Other, 0) || got.Speedup != 4 {
		t.Errorf("%+v, speed-up %v", got.Parts, got.Speedup)
	}
}

func TestJoin(t *testing.T) {
	computing := Truth{Parts: Parts{Busy: 4}, Raw: Waits{Duration: 4}}
	reading := Truth{Parts: Parts{Busy: 1, Storage: 3}, Raw: Waits{Duration: 4}, Rerun: &Waits{Duration: 1}}
	got := join(8.1, []Truth{computing, reading})
	if !near(got.Speedup, 8.0/5) || !near(got.Other, 0.1) || got.Verdict != window.StorageBound ||
		!near(got.Unexplained, 0) {
		t.Errorf("join: got %+v, want speed-up 1.6, other 0.1, storage_bound, nothing unexplained", got)
	}
	if alone := join(4, []Truth{computing}); alone.Speedup != 0 || alone.Rerun != nil {
		t.Errorf("join without a rerun: got %+v, want no speed-up", alone)
	}
}

func TestJudge(t *testing.T) {
	r := Result{Label: window.GPUBound, Void: "of an earlier look", Truth: Truth{Parts: Parts{Busy: 1}}}
	if r.judge(); r.Void != "" || r.Truth.Verdict != window.GPUBound {
		t.Errorf("judge: got %+v, want gpu_bound and not void", r)
	}
	r.Truth.Parts = Parts{Busy: 9, Other: 1}
	if r.judge(); r.Void == "" {
		t.Error("a truth without a margin counts")
	}
	r.Truth.Parts, r.Truth.Mismatch = Parts{Busy: 1}, true
	if r.judge(); r.Void == "" {
		t.Error("a rerun of something else counts")
	}
}

func TestSettled(t *testing.T) {
	at := func(ms int, v window.Verdict) poll { return poll{time.Duration(ms) * time.Millisecond, v, ""} }
	polls := []poll{at(250, window.GPUBound), at(500, window.Unknown), at(750, window.GPUBound), at(1000, window.GPUBound)}
	r := &window.Report{Judgement: window.Judgement{Verdict: window.GPUBound}}
	r.End.Mono = 1100 * time.Millisecond
	for _, c := range []struct {
		polls []poll
		want  float64
	}{{polls, 0.75}, {polls[:2], 1.1}, {nil, 1.1}} {
		if got := settled(c.polls, r, window.GPUBound); got == nil || *got != c.want {
			t.Errorf("after %v: %v, want %v", c.polls, got, c.want)
		}
	}
	if settled(polls, r, window.CPUBound) != nil {
		t.Error("a verdict that was never right")
	}
}

// A change of phase shows in the verdict of the last seconds, counted from the start of the phase.
func TestChanged(t *testing.T) {
	at := func(seconds float64, recent window.Verdict) poll {
		return poll{time.Duration(seconds * float64(time.Second)), window.Mixed, recent}
	}
	const old, now = window.GPUBound, window.StorageBound
	whole, phase := &window.Report{}, &window.Report{}
	whole.Start.Mono = time.Minute
	phase.Start.Mono = whole.Start.Mono + 11*time.Second
	for what, c := range map[string]struct {
		length time.Duration
		polls  []poll
		want   float64 // 0 for none
	}{
		"after a while":          {11 * time.Second, []poll{at(10, old), at(12, old), at(13.5, now), at(21, now)}, 2.5},
		"not to stay":            {11 * time.Second, []poll{at(12, now), at(14, old), at(20.5, now), at(21, now)}, 9.5},
		"too late":               {11 * time.Second, []poll{at(12, old), at(21.5, now)}, 10.5},
		"never":                  {11 * time.Second, []poll{at(12, now), at(20, old)}, 11},
		"never looked at":        {11 * time.Second, nil, 11},
		"as it was before":       {11 * time.Second, []poll{at(9, now), at(10.9, now), at(11.2, now), at(20, now)}, 0.2},
		"soon":                   {4 * time.Second, []poll{at(11.5, ""), at(12.5, now), at(14, now)}, 1.5},
		"over before it is late": {4 * time.Second, []poll{at(11.5, old), at(14.9, old)}, 0},
	} {
		phase.End.Mono = phase.Start.Mono + c.length
		switch got := changed(c.polls, whole, phase, now); {
		case c.want == 0 && got != nil:
			t.Errorf("%s: %v s", what, *got)
		case c.want > 0 && (got == nil || !near(*got, c.want)):
			t.Errorf("%s: %v, want %v s", what, got, c.want)
		}
	}
}

// In every second variant of a full run a verdict can be too late after a change, even if a phase is shorter than
// planned.
func TestPhasesAreLongEnough(t *testing.T) {
	c := caseOf(t, "phase_change")
	for i := range 2 * someSeeds {
		first, second := c.Variant(Seed(uint64(i), 0), false), c.Variant(Seed(uint64(i), 1), false)
		a, b := first.Stages[1].Length, second.Stages[1].Length
		if least := 1.2 * Targets.Verdict; max(a, b).Seconds() < least || min(a, b).Seconds() >= least {
			t.Errorf("phases of %v and %v", a, b)
		}
		for _, v := range []Variant{first, second} {
			need := v.Stages[1].Length.Seconds() * (1 - v.Stages[1].Aim.Busy - v.Stages[1].Aim.CPU) * 64 * (1 << 20)
			if v.Kind == slowdisk.SATA && float64(int64(v.Files)*v.Size) < need {
				t.Errorf("%d files for a phase of %v", v.Files, v.Stages[1].Length)
			}
		}
	}
}

func TestSupersede(t *testing.T) {
	window1, window2, again := judged(
		window.GPUBound,
		window.GPUBound,
	), judged(
		window.GPUBound,
		window.GPUBound,
	), judged(
		window.GPUBound,
		window.GPUBound,
	)
	window1.Name, window2.Name, again.Name = "phases/1", "phases/2", "phases/1"
	window1.Seed, window2.Seed, again.Seed = Seed(1, 2), Seed(1, 2), Retry(Seed(1, 2))
	window1.Void = "its truth keeps no margin"
	other := judged(window.GPUBound, window.GPUBound)
	other.Name, other.Seed = "phases/2", Seed(1, 3)
	if Supersede([]*Result{window1, window2, again, other}); window2.Void == "" || again.Void != "" || other.Void != "" {
		t.Errorf("void: %q, %q, %q", window2.Void, again.Void, other.Void)
	}
}

// A wrong verdict counts even if the second attempt was right.
func TestSupersedeKeepsWhatIsWrong(t *testing.T) {
	wrong, again := judged(window.GPUBound, window.StorageBound), judged(window.GPUBound, window.GPUBound)
	wrong.Seed, again.Seed = Seed(1, 2), Retry(Seed(1, 2))
	results := []*Result{wrong, again}
	Supersede(results)
	if s := Sum(results); s.Void != 0 || s.FalseStorage != 1 || s.Recall[window.GPUBound] != 0.5 {
		t.Errorf("%d void, %d false, recall %v", s.Void, s.FalseStorage, s.Recall)
	}
}
