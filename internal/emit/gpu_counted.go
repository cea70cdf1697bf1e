package emit

import (
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// gpuCounted is what an accelerator's counters were when it was last told of. Unlike the last snapshot it outlives a time
// in which the accelerator could not be read.
type gpuCounted struct {
	read, asked  time.Time // when: its row, and its details
	busy, energy counted
	details      [sample.GPUQuantities]counted
}

func newGPUCounted(string) gpuCounted { return gpuCounted{} }

// counted is one counter, each of which begins again by itself.
type counted struct {
	last  float64
	began time.Time // zero while it was not seen to begin again
}

// start is when the counter began: at boot, or, once it was seen to begin again, at the reading before that.
func (c *counted) start(v float64, before, boot time.Time) time.Time {
	if v < c.last {
		c.began = before
	}
	c.last = v
	if c.began.IsZero() {
		return boot
	}
	return c.began
}
