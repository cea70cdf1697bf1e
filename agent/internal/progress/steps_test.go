package progress

import (
	"fmt"
	"slices"
	"testing"
)

// stepsOf returns the steps that a reader finds in the lines.
func stepsOf(t *testing.T, lines ...string) (got []int) {
	t.Helper()
	r, err := NewReader(Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		for _, e := range r.Line([]byte(line)) {
			if e.Kind == StepReached {
				got = append(got, e.Step)
			}
		}
	}
	return got
}

// A counter is one of steps from the third number on that is larger than those before.
func TestSteps(t *testing.T) {
	for _, format := range []string{
		"step %d/1000 loss 4.2", "step %d: loss 4.2", "Step: %d, loss=4.2", "iter %d: loss 4.2, time 12.3ms",
		`{"step": %d, "loss": 4.2}`, `{"loss": 4.2, "global_step":%d}`, "{'iter': %d}", "global_step=%d loss=4.2",
		"[%d/10] loss 0.3", "[rank0]: step %d loss 4.2", "0: iter %d loss 1",
		" iteration %8d/  500000 | consumed samples:  1024 | elapsed time per iteration (ms): 12.1",
		"2026-06-07 12:00:00,123 - root - INFO - step:  %d  loss: 12.2", "STEP %d.",
	} {
		lines := make([]string, 0, 4)
		for n := range 4 {
			lines = append(lines, fmt.Sprintf(format, 9+n))
		}
		if got, want := stepsOf(t, lines...), []int{11, 12}; !slices.Equal(got, want) {
			t.Errorf("%q: got the steps %v, want %v", format, got, want)
		}
	}
}

func TestNoSteps(t *testing.T) {
	for name, lines := range map[string][]string{
		"epochs":              {"Epoch 1/3", "step 1", "step 2", "step 3", "step 4"},
		"a constant":          {"batch 32", "batch 32", "batch 32", "batch 32"},
		"fractions":           {"step 0.1", "step 0.2", "step 0.3", "step 0.4"},
		"only two":            {"step 1", "step 2"},
		"counts down":         {"step 4", "step 3", "step 2", "step 1"},
		"part of a word":      {"footstep1", "footstep2", "footstep3", "footstep4"},
		"epochs of other use": {"best epoch 1", "best epoch 2", "best epoch 3", "best epoch 4"},
		"too large":           {"step 9999999991", "step 9999999992", "step 9999999993", "step 9999999994"},
	} {
		if got := stepsOf(t, lines...); len(got) > 0 {
			t.Errorf("%s: got the steps %v, want none", name, got)
		}
	}
}

// The first epoch ends the search for steps.
func TestEpochsWinOverSteps(t *testing.T) {
	got := stepsOf(t, "step 1", "step 2", "step 3", "step 4", "Epoch 1: loss 0.5", "step 5", "step 6")
	if want := []int{3, 4}; !slices.Equal(got, want) {
		t.Errorf("got the steps %v, want %v", got, want)
	}
}
