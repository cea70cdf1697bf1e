// Package condition tells when something that is measured again and again becomes a condition worth a word, and when it is
// over: each once. Two thresholds keep a value that trembles around one of them quiet, and two durations a short one.
package condition

import (
	"math"
	"time"
)

// Limits say when a condition begins and when it is over.
type Limits struct {
	Raise float64 // it begins at or above this value
	Clear float64 // and is over at or below this one, which is less

	After time.Duration // for so long without a break it is at or above Raise before it has begun; 0 for at once
	Until time.Duration // for so long it is at or below Clear before it is over
	Apart time.Duration // the minimum duration: between two changes lies at least as much
}

// Change is what a look has shown.
type Change uint8

const (
	None     Change = iota // all is as it was
	Raised                 // the condition has begun
	Resolved               // it is over
)

// longestGap is the time between two looks from which on nothing is known of what lies between them. A machine that was
// suspended has not been hot for all that time.
const longestGap = 10 * time.Second

// State is one condition of one device. The zero value is one that never was. It is not safe for concurrent use.
type State struct {
	raised  bool
	pending bool          // the value is where it would change, since then
	since   time.Duration //
	looked  bool          // at least once, and when last
	last    time.Duration
	changed bool // at least once, and when last
	at      time.Duration
	edge    time.Duration // from when on the value was where the last change put it
}

// Look takes a value that was measured at a moment of a clock that never steps. NaN is a value that is not known: while it
// is so nothing changes, and no time counts. A look that is no later than the one before is passed over.
func (s *State) Look(l *Limits, at time.Duration, value float64) Change {
	if s.looked && at <= s.last {
		return None
	}
	if s.looked && at-s.last > longestGap {
		s.pending = false
	}
	s.looked, s.last = true, at
	there, hold := value >= l.Raise, l.After
	if s.raised {
		there, hold = value <= l.Clear, l.Until
	}
	if !there || math.IsNaN(value) {
		s.pending = false
		return None
	}
	if !s.pending {
		s.pending, s.since = true, at
	}
	if at-s.since < hold || s.changed && at-s.at < l.Apart {
		return None
	}
	s.raised, s.pending = !s.raised, false
	s.changed, s.at, s.edge = true, at, s.since
	if s.raised {
		return Raised
	}
	return Resolved
}

// Raised says whether the condition holds.
func (s *State) Raised() bool { return s.raised }

// Edge is when the value came to where the last change put it: Limits.After or Limits.Until before that, or earlier.
func (s *State) Edge() time.Duration { return s.edge }
