// Package events notices what happens to the machine: each condition is told once when it begins.
package events

import (
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// GPULost is a GPU that can no longer be read.
type GPULost struct {
	At  time.Time // of the first reading that says so; the driver may have stopped answering a second or two before
	GPU sample.GPU
}

// GPUs watches the accelerators of one machine. The zero value is ready. It is not safe for concurrent use.
type GPUs struct {
	down map[string]bool // hw.id of those that were told of
}

// mostDown bounds GPUs.down. No machine has more.
const mostDown = 1024

// Look gives the GPUs that cannot be read any more: each once, and again only after it could be read in between.
func (w *GPUs) Look(s *sample.Sample) (lost []GPULost) {
	for i := range s.GPUs {
		g := &s.GPUs[i]
		if g.Status == sample.GPUWorks {
			delete(w.down, g.ID)
			continue
		}
		if w.down[g.ID] || len(w.down) >= mostDown {
			continue
		}
		if w.down == nil {
			w.down = map[string]bool{}
		}
		w.down[g.ID] = true
		lost = append(lost, GPULost{s.At.Wall, *g})
	}
	return lost
}
