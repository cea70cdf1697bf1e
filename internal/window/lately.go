package window

import "time"

// LatelyTime is over how long a window that goes on is judged apart, so that a change in the middle of a long one shows
// within seconds and not when it outweighs what was before.
const LatelyTime = 5 * time.Second

// Lately is how the last LatelyTime of a window were.
type Lately struct {
	Verdict Verdict
	Finding string // one sentence
}

// Tail is the last LatelyTime of a window that is looked at while it goes on; false where it is not longer than that.
// Its beginning has no reading of its own and lies on the grid of readings.
func (w *Window) Tail() (Window, bool) {
	if w.Duration() <= LatelyTime {
		return Window{}, false
	}
	tail := *w
	tail.Start.Mono, tail.StartEdge = w.End.Mono-LatelyTime, nil
	tail.Start.Wall = w.End.Wall.Add(-LatelyTime)
	return tail, true
}
