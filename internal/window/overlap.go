package window

import (
	"slices"
	"time"
)

// Other is another window that may have read from the same disks.
type Other struct {
	Window *Window
	Until  time.Duration // its end, or now while it is open
	From   []string
}

// Overlaps reports whether two windows were active at the same time, for at least a tenth of the shorter one. A window
// that is a part of the other, as an epoch is of its run, does not count.
func (w *Window) Overlaps(o *Window, until time.Duration) bool {
	from, to := max(w.Start.Mono, o.Start.Mono), min(w.End.Mono, until)
	shorter := min(w.Duration(), until-o.Start.Mono)
	if w.ID == o.ID || to <= from || (to-from).Seconds() < minOverlap*shorter.Seconds() {
		return false
	}
	if w.Job != o.Job || w.Kind == o.Kind && w.Kind != Custom {
		return true
	}
	within := w.Start.Mono >= o.Start.Mono && w.End.Mono <= until
	around := w.Start.Mono <= o.Start.Mono && w.End.Mono >= until
	return !within && !around
}

// CountOthers counts the windows that read from the same disks at the same time.
func (r *Report) CountOthers(others []Other) {
	r.OthersByDisk = make([]int, len(r.From))
	for _, o := range others {
		if !r.Overlaps(o.Window, o.Until) {
			continue
		}
		shared := false
		for i, disk := range r.From {
			if slices.Contains(o.From, disk) {
				r.OthersByDisk[i]++
				shared = true
			}
		}
		if shared {
			r.Others++
		}
	}
}
