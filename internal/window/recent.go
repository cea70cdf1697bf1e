package window

import "time"

// RecentTime is the length of the end of an open window that has a verdict of its own. So a change in a long window
// shows within seconds, not when it outweighs the hours before.
const RecentTime = 5 * time.Second

// Tail returns the last RecentTime of an open window; false if the window is not longer. Its start has no reading of
// its own and is on the grid of readings.
func (w *Window) Tail() (Window, bool) {
	if w.Duration() <= RecentTime {
		return Window{}, false
	}
	tail := *w
	tail.Start.Mono, tail.StartEdge = w.End.Mono-RecentTime, nil
	tail.Start.Wall = w.End.Wall.Add(-RecentTime)
	return tail, true
}
