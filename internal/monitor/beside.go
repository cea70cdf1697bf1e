package monitor

import (
	"cmp"
	"slices"

	"github.com/stallspan/stallspan/internal/window"
)

// mostBeside bounds the open windows that are looked at for one that ends; mostOpen those for one that goes on.
const (
	mostBeside = 32
	mostOpen   = 8
)

// others are the windows that were at work while w was, and that may have read from the same disks. m.mu is held.
func (m *Monitor) others(w *window.Window) (others []window.Other) {
	running := m.track.Find(w.ID) != nil
	if w.ID == "" || running && m.track.Len() > mostOpen {
		return nil // a span; or too much to ask for each of many windows
	}
	for _, r := range m.track.Ended(w.End.Mono) {
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

// openBeside are the open windows at work beside w, those that began last in front.
func (m *Monitor) openBeside(w *window.Window) []*window.Window {
	var open []*window.Window
	for _, o := range m.track.Open() {
		if w.Beside(o, w.End.Mono) {
			open = append(open, o)
		}
	}
	slices.SortFunc(open, func(a, b *window.Window) int {
		return cmp.Or(cmp.Compare(b.Start.Mono, a.Start.Mono), cmp.Compare(a.ID, b.ID)) // the same when it is replayed
	})
	return open[:min(len(open), mostBeside)]
}

// stormy looks whether a window that ended slow was in an I/O storm of which nobody has told yet. m.mu is held.
func (m *Monitor) stormy(r *window.Report) {
	if !r.Slow || len(r.From) == 0 {
		return
	}
	ended := m.track.Ended(r.End.Mono)
	for _, disk := range r.From {
		since := r.End.Mono
		for _, o := range ended {
			if o.Slow && slices.Contains(o.From, disk) && r.Beside(&o.Window, o.End.Mono) {
				since = min(since, max(r.Start.Mono, o.Start.Mono))
			}
		}
		if since < r.End.Mono && m.storms.Look(disk, since, r.End.Mono) {
			r.Storms = append(r.Storms, window.Storm{Disk: disk, Windows: r.Others + 1, Since: since})
		}
	}
}
