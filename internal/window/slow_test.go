package window

import (
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// What a slow window says of its time can be read in one way only.
func TestTook(t *testing.T) {
	usual := &Baseline{Median: 90 * time.Millisecond, P95: 100 * time.Millisecond, Count: 7}
	for want, limits := range map[string]Limits{
		"It took 502 ms, over the limit of 100 ms that was set: the GPU waited.": {Set: 100 * time.Millisecond, Baseline: usual},
		"It took 502 ms where 100 ms is usual (p95 of 7 loads): the GPU waited.": {Set: time.Second, Baseline: usual},
		"The GPU waited.": {Set: time.Second, Baseline: usual, Factor: 6},
	} {
		r := &Report{Window: Window{Kind: ModelLoad, End: sample.Stamp{Mono: 502 * time.Millisecond}}, Finding: "The GPU waited."}
		if r.Took(limits); r.Finding != want {
			t.Errorf("%q, not %q", r.Finding, want)
		}
	}
}
