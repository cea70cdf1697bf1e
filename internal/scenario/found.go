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

// poll is what a running window's report said so long after its beginning.
type poll struct {
	after   time.Duration
	verdict window.Verdict
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
