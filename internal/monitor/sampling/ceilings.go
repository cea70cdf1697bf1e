package sampling

import (
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/state/ceiling"
)

// ceilings are the learned ceilings, with those that stallspan bench measured.
type ceilings struct {
	ceiling.Learner
	measured []sample.Ceiling // replace the ones before at the end of the next round
	pending  bool
	known    bool // some were measured before
}

// SetMeasured replaces the measured ceilings from the next round on.
func (r *Readings) SetMeasured(found []sample.Ceiling) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := &r.now.ceilings
	if len(found) > 0 || c.known {
		c.measured, c.pending = found, true
	}
}

// apply makes pending ceilings known, and returns them for the journal; nil if none are pending. A replay makes them
// known at the same round.
func (c *ceilings) apply() []sample.Ceiling {
	if !c.pending {
		return nil
	}
	c.Know(c.measured)
	c.pending, c.known = false, len(c.measured) > 0
	return c.measured
}
