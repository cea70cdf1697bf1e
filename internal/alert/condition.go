package alert

import (
	"math"
	"time"
)

// Limits define when a condition begins and ends. Two thresholds and two hold times prevent flapping.
type Limits struct {
	Raise float64 // the condition begins at or above this value
	Clear float64 // it ends at or below this value, which is lower

	RaiseAfter  time.Duration // time without a break at or above Raise before the condition begins; 0 for at once
	ClearAfter  time.Duration // time without a break at or below Clear before it ends
	MinInterval time.Duration // minimum time between two changes
}

// change is the result of an evaluation.
type change uint8

const (
	unchanged change = iota
	raised           // the condition has begun
	resolved         // the condition has ended
)

// maxGap is the longest time between two evaluations over which the value is assumed to have held. A machine that was
// suspended for an hour was not hot for that hour.
const maxGap = 10 * time.Second

// condition is the state of one condition of one device. The zero value is a condition that has not begun. It is not
// safe for concurrent use.
type condition struct {
	active    bool
	pending   bool          // the value has crossed the threshold for the next change
	since     time.Duration // when it did
	evaluated bool          // at least once
	last      time.Duration // the last evaluation
	changed   bool          // at least once
	changedAt time.Duration // the last change
	edge      time.Duration // when the value crossed the threshold before the last change
}

// evaluate takes a value measured at a time of the monotonic clock. NaN means that the value is unknown: nothing
// changes, and hold times start again. Values out of order are ignored.
func (c *condition) evaluate(l *Limits, at time.Duration, value float64) change {
	if c.evaluated && at <= c.last {
		return unchanged
	}
	if c.evaluated && at-c.last > maxGap {
		c.pending = false
	}
	c.evaluated, c.last = true, at
	crossed, hold := value >= l.Raise, l.RaiseAfter
	if c.active {
		crossed, hold = value <= l.Clear, l.ClearAfter
	}
	if !crossed || math.IsNaN(value) {
		c.pending = false
		return unchanged
	}
	if !c.pending {
		c.pending, c.since = true, at
	}
	if at-c.since < hold || c.changed && at-c.changedAt < l.MinInterval {
		return unchanged
	}
	c.active, c.pending = !c.active, false
	c.changed, c.changedAt, c.edge = true, at, c.since
	if c.active {
		return raised
	}
	return resolved
}
