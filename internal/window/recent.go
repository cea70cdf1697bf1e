package window

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
