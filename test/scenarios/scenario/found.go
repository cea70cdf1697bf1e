package scenario

import (
	"fmt"
	"time"

	"github.com/stallspan/stallspan/internal/window"
)

// windowID is what a monitor calls the window of a stage, counted from 1; 0 is the one around all.
func windowID(name string, seed uint64, stage int) string {
	return fmt.Sprintf("%s-%d-%d", name, seed, stage)
}

// found is what a report says.
func found(r *window.Report) Got {
	return Got{
		Verdict: r.Verdict, Speedup: r.Speedup, Uncertainty: r.Uncertainty, Finding: r.Finding,
		Parts: Parts{r.Busy.Seconds(), r.Storage.Seconds(), r.CPU.Seconds(), r.Other.Seconds()},
	}
}

// poll is what a running window's report said so long after its beginning: of all of it, and of its last seconds.
type poll struct {
	after   time.Duration
	verdict window.Verdict
	recent  window.Verdict // "" where the window is too short for that
}

// look is a poll of a report.
func look(r *window.Report) poll {
	p := poll{after: r.Duration(), verdict: r.Verdict}
	if r.Recent != nil {
		p.recent = r.Recent.Verdict
	}
	return p
}

// settled is how many seconds after its beginning a window's verdict was the label and stayed so to the end; nil where it
// never was.
func settled(polls []poll, r *window.Report, label window.Verdict) *float64 {
	if r.Verdict != label {
		return nil
	}
	after := r.Duration()
	for i := len(polls) - 1; i >= 0 && polls[i].verdict == label; i-- {
		after = polls[i].after
	}
	seconds := after.Seconds()
	return &seconds
}

// changed is how many seconds after the last phase of a window around several began the verdict about the window's last
// seconds was that phase's label and stayed so. Where it never was, it is the phase's length: not before that. It is nil
// for a phase that was over before the verdict could be late.
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
