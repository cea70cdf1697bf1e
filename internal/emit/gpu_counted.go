package emit

import (
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// gpuCounted holds a GPU's counters of the last collection. Unlike the last snapshot, it survives a time in which the
// GPU could not be read.
type gpuCounted struct {
	read, detail time.Time // when its values, and its details, were read
	busy, energy counted
	details      [sample.GPUQuantities]counted
}

func newGPUCounted(string) gpuCounted { return gpuCounted{} }

// counted is one counter, which may restart.
type counted struct {
	last  float64
	began time.Time // of the last restart; zero before the first one
}

// start returns the start time of the counter: boot, or after a restart the last reading before it.
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
