package agent

import (
	"encoding/json"
	"math"
	"testing"
)

// TestH200 replays a training on an H200: the second epoch reads from memory what the first one read from a fast disk.
func TestH200(t *testing.T) {
	t.Parallel()
	_, d, _ := replayed(t, 0, "../testdata/h200/training.jsonl.gz")
	if len(d.Windows) != 2 {
		t.Fatalf("got %d windows, want two epochs", len(d.Windows))
	}
	var epochs [2]struct {
		Verdict  string
		Duration float64 `json:"duration_s"`
		Speedup  float64 `json:"speedup_bound"`
		Evidence string
	}
	for i, w := range d.Windows {
		if err := json.Unmarshal(w, &epochs[i]); err != nil {
			t.Fatal(err)
		}
	}
	cold, cached := epochs[0], epochs[1]
	if cold.Evidence != "schedule" || cold.Verdict != "mixed" || cached.Verdict != "cpu_bound" {
		t.Errorf("got %+v and %+v, want mixed and cpu_bound, by the scheduler", cold, cached)
	}
	if measured := cold.Duration / cached.Duration; math.Abs(cold.Speedup/measured-1) > 0.1 {
		t.Errorf("got a predicted speed-up of %.2f, want 0.1 from the %.2f that were measured", cold.Speedup, measured)
	}
	if cached.Speedup != 1 {
		t.Errorf("got a speed-up of %.2f without storage that was not used, want 1", cached.Speedup)
	}
}
