package events

import (
	"strconv"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

func TestGPULost(t *testing.T) {
	var w GPUs
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	look := func(first, second sample.GPUStatus) []GPULost {
		now = now.Add(time.Second)
		return w.Look(&sample.Sample{At: sample.Stamp{Wall: now}, GPUs: []sample.GPU{
			{ID: "GPU-1", Name: "one", Status: first}, {ID: "GPU-2", Name: "two", Status: second}}})
	}
	const ok, hung, gone = sample.GPUWorks, sample.GPUHung, sample.GPULost
	for i, step := range []struct {
		first, second sample.GPUStatus
		lost          []string
	}{
		{ok, ok, nil},
		{ok, hung, []string{"GPU-2"}},
		{ok, hung, nil},
		{ok, gone, nil}, // the same GPU, the same loss
		{gone, gone, []string{"GPU-1"}},
		{ok, gone, nil},
		{hung, gone, []string{"GPU-1"}},
		{ok, ok, nil},
		{gone, gone, []string{"GPU-1", "GPU-2"}},
	} {
		lost := look(step.first, step.second)
		if len(lost) != len(step.lost) {
			t.Fatalf("step %d: %+v, want %v", i, lost, step.lost)
		}
		for k := range lost {
			if lost[k].GPU.ID != step.lost[k] || !lost[k].At.Equal(now) {
				t.Errorf("step %d: %+v, want %v at %v", i, lost[k], step.lost[k], now)
			}
		}
	}
	for i := range 2 * mostDown {
		w.Look(&sample.Sample{GPUs: []sample.GPU{{ID: strconv.Itoa(i), Status: gone}}})
	}
	if len(w.down) > mostDown {
		t.Errorf("%d are remembered", len(w.down))
	}
}
