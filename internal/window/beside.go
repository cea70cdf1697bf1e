package window

import (
	"slices"
	"time"
)

// Other is what is known of another window that may have read from the same disks.
type Other struct {
	Window *Window
	Until  time.Duration // its end, or the present moment while it is open
	From   []string
}

// Beside says whether two windows were at work at the same time, for a tenth of the shorter one at least, and neither is
// only a part of the other, as an epoch is of its run.
func (w *Window) Beside(o *Window, until time.Duration) bool {
	from, to := max(w.Start.Mono, o.Start.Mono), min(w.End.Mono, until)
	shorter := min(w.Duration(), until-o.Start.Mono)
	if w.ID == o.ID || to <= from || to-from < shorter/10 {
		return false
	}
	if w.Job != o.Job || w.Kind == o.Kind && w.Kind != Custom {
		return true
	}
	within := w.Start.Mono >= o.Start.Mono && w.End.Mono <= until
	around := w.Start.Mono <= o.Start.Mono && w.End.Mono >= until
	return !within && !around
}

// beside counts the others that read from the same disks meanwhile.
func (r *Report) beside(others []Other) {
	r.others = make([]int, len(r.From))
	for _, o := range others {
		if !r.Beside(o.Window, o.Until) {
			continue
		}
		shared := false
		for i, disk := range r.From {
			if slices.Contains(o.From, disk) {
				r.others[i]++
				shared = true
			}
		}
		if shared {
			r.Others++
		}
	}
}

// OthersOn is how many other windows read from a disk of From meanwhile.
func (r *Report) OthersOn(disk string) int {
	if i := slices.Index(r.From, disk); i >= 0 && i < len(r.others) {
		return r.others[i]
	}
	return 0
}
