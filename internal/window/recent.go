package window

import "time"

// RecentTime is over how long a window that goes on is judged apart, so that a change in the middle of a long one shows
// within seconds and not when it outweighs what was before.
const RecentTime = 5 * time.Second

// Recent is how the last RecentTime of a window were.
type Recent struct {
	Verdict Verdict
	Finding string // one sentence
}

// Tail is the last RecentTime of a window that is looked at while it goes on; false where it is not longer than that.
// Its beginning has no reading of its own and lies on the grid of readings.
func (w *Window) Tail() (Window, bool) {
	if w.Duration() <= RecentTime {
		return Window{}, false
	}
	tail := *w
	tail.Start.Mono, tail.StartEdge = w.End.Mono-RecentTime, nil
	tail.Start.Wall = w.End.Wall.Add(-RecentTime)
	return tail, true
}
