package scenario

import (
	"fmt"
	"time"

	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/window"
)

// windowID names the window of a stage in the monitor, counted from 1; 0 is the window around all stages.
func windowID(name string, seed uint64, stage int) string {
	return fmt.Sprintf("%s-%d-%d", name, seed, stage)
}

// found holds a report.
func found(r *window.Report) Got {
	return Got{
		Verdict: Labelled(r.Verdict), Speedup: r.Speedup, Uncertainty: r.Uncertainty, Finding: explain.Finding(r),
		Parts: Parts{r.Busy.Seconds(), r.Storage.Seconds(), r.CPU.Seconds(), r.Other.Seconds(), r.Network.Seconds()},
	}
}

// Labelled returns a verdict as labels have it: whether the reason of other is known depends on the evidence.
func Labelled[V ~string](v V) V {
	if v == V(window.WaitBound) {
		return V(window.Unknown)
	}
	return v
}

// poll is the report of a running window at some time after its start: for all of it, and for its last seconds.
type poll struct {
	after   time.Duration
	verdict window.Verdict
	recent  window.Verdict // "" if the window is too short
}

// look returns a poll of a report.
func look(r *window.Report) poll {
	p := poll{after: r.Duration(), verdict: Labelled(r.Verdict)}
	if r.Recent != nil {
		p.recent = Labelled(r.Recent.Verdict)
	}
	return p
}

// settled returns how many seconds after the start a window's verdict became the label permanently; nil if it never
// did.
func settled(polls []poll, r *window.Report, label window.Verdict) *float64 {
	if Labelled(r.Verdict) != label {
		return nil
	}
	after := r.Duration()
	for i := len(polls) - 1; i >= 0 && polls[i].verdict == label; i-- {
		after = polls[i].after
	}
	seconds := after.Seconds()
	return &seconds
}

// changed returns how many seconds after the start of the last phase the verdict of the window's last seconds became
// that phase's label permanently. If it never did, it returns the phase's length, which is a lower bound. It returns
// nil for a phase that is too short for a late verdict.
func changed(polls []poll, whole, phase *window.Report, label window.Verdict) *float64 {
	began := phase.Start.Mono - whole.Start.Mono
	never := phase.Duration()
	after := never
	for i := len(polls) - 1; i >= 0 && polls[i].recent == label && polls[i].after >= began; i-- {
		after = min(polls[i].after-began, never)
	}
	if after == never && never.Seconds() < Targets.Verdict {
		return nil
	}
	seconds := after.Seconds()
	return &seconds
}
