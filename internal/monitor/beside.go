package monitor

import (
	"cmp"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/window"
)

// mostBeside bounds the open windows that are looked at for one that ends; mostOpen those for one that goes on.
const (
	mostBeside = 32
	mostOpen   = 8
)

// others are the windows that were at work while w was, and that may have read from the same disks. m.mu is held.
func (m *Monitor) others(w *window.Window) (others []window.Other) {
	for r := range m.track.Back(w.Start.Mono, w.End.Mono) {
		if len(r.From) > 0 && w.Beside(&r.Window, r.End.Mono) {
			others = append(others, window.Other{Window: &r.Window, Until: r.End.Mono, From: r.From})
		}
	}
	for _, o := range m.openBeside(w) {
		other := *o
		other.End, other.EndEdge = w.End, w.EndEdge
		from := window.ReadFrom(m.history, &other, m.known(&other))
		others = append(others, window.Other{Window: &other, Until: w.End.Mono, From: from})
	}
	return others
}

// asksOthers says whether it is worth while to look for others. m.mu is held.
func (m *Monitor) asksOthers(w *window.Window) bool {
	return m.track.Len() <= mostOpen || m.track.Find(w.ID) == nil // too much to ask for each of many that go on
}

// openBeside are the open windows at work beside w, those that began last in front: mostBeside of them at most, found
// without sorting all.
func (m *Monitor) openBeside(w *window.Window) []*window.Window {
	var open []*window.Window
	for o := range m.track.OpenOnes() {
		if len(open) == mostBeside && laterFirst(o, open[mostBeside-1]) > 0 || !w.Beside(o, w.End.Mono) {
			continue
		}
		i, _ := slices.BinarySearchFunc(open, o, laterFirst)
		if len(open) == mostBeside {
			open = open[:mostBeside-1]
		}
		open = slices.Insert(open, i, o)
	}
	return open
}

// laterFirst orders windows by their beginnings, and always in the same way, so that a replay finds the same.
func laterFirst(a, b *window.Window) int {
	return cmp.Or(cmp.Compare(b.Start.Mono, a.Start.Mono), cmp.Compare(a.ID, b.ID))
}

// stormy looks whether a window that ended slow was in an I/O storm of which nobody has told yet. Where one began on several
// disks at once, as on those of a RAID, the one with the most windows is told of. m.mu is held.
func (m *Monitor) stormy(r *window.Report) {
	if !r.Slow || r.Others == 0 {
		return
	}
	since := m.stormySince(r)
	var worst window.Storm
	for i, disk := range r.From {
		if since[i] >= r.End.Mono || !m.storms.Observe(disk, since[i], r.End.Mono) {
			continue
		}
		if n := r.OthersOn(disk) + 1; n > worst.Windows {
			worst = window.Storm{Disk: disk, Windows: n, Since: since[i]}
		}
	}
	if worst.Windows > 0 {
		r.Storms = []window.Storm{worst}
		m.storms.Reported(worst.Disk, worst.Windows, r.Wall(worst.Since))
	}
}

// stormySince is since when another slow window read from each disk that r read from, and r.End where none did. m.mu is held.
func (m *Monitor) stormySince(r *window.Report) []time.Duration {
	since := slices.Repeat([]time.Duration{r.End.Mono}, len(r.From))
	for o := range m.track.Back(r.Start.Mono, r.End.Mono) {
		if !o.Slow || len(o.From) == 0 || !r.Beside(&o.Window, o.End.Mono) {
			continue
		}
		for i, disk := range r.From {
			if slices.Contains(o.From, disk) {
				since[i] = min(since[i], max(r.Start.Mono, o.Start.Mono))
			}
		}
	}
	return since
}
