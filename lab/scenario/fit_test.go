//go:build linux

package scenario

import (
	"testing"
	"time"

	"github.com/stallspan/stallspan/lab/pipeline"
	"github.com/stallspan/stallspan/test/slowdisk"
)

// A cgroup limit lets a reader go faster after a pause. A program that reads and computes in turn does not wait for the
// sum of both, so it is measured again.
func TestStepOfWhatSavesUp(t *testing.T) {
	const batch = 40 * time.Millisecond
	for what, c := range map[string]struct {
		saves   bool
		style   pipeline.Style
		busy    float64
		compute time.Duration
		step    time.Duration
		again   bool
	}{
		"in turn":              {false, pipeline.Serial, 0.5, batch, 2 * batch, false},
		"in turn, with saving": {true, pipeline.Serial, 0.5, batch / 2, batch, true},
		"ahead, with saving":   {true, pipeline.PyTorch, 0.5, batch / 2, batch, false},
		"in turn, computing":   {true, pipeline.Serial, 2, 40 * batch, 41 * batch, false},
	} {
		s := Stage{Plan: Plan{Style: c.style}, Aim: Aim{Busy: c.busy}, saves: c.saves}
		if step := s.step(batch); step != c.step || s.Plan.Compute != c.compute || s.savesUp() != c.again {
			t.Errorf("%s: a step of %v, compute %v, again: %v", what, step, s.Plan.Compute, s.savesUp())
		}
	}
	all(t, func(t *testing.T, _ *Case, v Variant) {
		if s := &v.Stages[0]; s.saves != (v.Kind == slowdisk.Throttled && s.From == Cold) {
			t.Errorf("seed %d, on %s: saves %v", v.Seed, v.Kind, s.saves)
		}
	})
}
