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

// OfOneProgram reports whether two windows are of one program, if that is known.
func (w *Window) OfOneProgram(o *Window) bool {
	if w.Job != "" || o.Job != "" {
		return w.Job == o.Job
	}
	return w.PID != 0 && w.PID == o.PID && w.Client == o.Client
}

// Holds reports whether another window is a part of an epoch, as the steps in it are. The epoch ends at a moment, or is
// open until then. A program may announce both at once, and either comes first: a small part may be outside.
func (w *Window) Holds(o *Window, until time.Duration) bool {
	inside := min(o.End.Mono, until) - max(o.Start.Mono, w.Start.Mono)
	return w.Kind == Epoch && o.Kind != Epoch && w.OfOneProgram(o) && inside >= 0 &&
		inside.Seconds() >= (1-minOverlap)*o.Duration().Seconds()
}

// Overlaps reports whether windows of two programs were active at the same time, for at least a tenth of the shorter
// one. Of windows whose program is not known, one that is a part of the other, as an epoch is of its run, does not
// count.
func (w *Window) Overlaps(o *Window, until time.Duration) bool {
	from, to := max(w.Start.Mono, o.Start.Mono), min(w.End.Mono, until)
	shorter := min(w.Duration(), until-o.Start.Mono)
	if w.ID == o.ID || w.OfOneProgram(o) || to <= from || (to-from).Seconds() < minOverlap*shorter.Seconds() {
		return false
	}
	if w.Job != o.Job || w.PID != o.PID || w.Kind == o.Kind && w.Kind != Custom {
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
