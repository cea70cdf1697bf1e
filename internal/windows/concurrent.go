package windows

import (
	"cmp"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/monitor/sampling"
	"github.com/stallspan/stallspan/internal/window"
)

const (
	maxConcurrent     = 32 // open windows that are compared with one that ends
	maxOpenConcurrent = 8  // open windows up to which each of them is compared with the others
)

// concurrent returns the windows that overlap with w, up to a moment, and may have read from the same disks.
func (t *table) concurrent(w *window.Window, until time.Duration) (c sampling.Concurrent) {
	upTo := *w
	upTo.End.Mono = until
	for r := range t.endedSince(w.Start.Mono, until) {
		if len(r.From) > 0 && upTo.Overlaps(&r.Window, r.End.Mono) {
			c.Ended = append(c.Ended, window.Other{Window: &r.Window, Until: r.End.Mono, From: r.From})
		}
	}
	c.Open = t.openConcurrent(&upTo)
	return c
}

// openConcurrent returns the open windows that overlap with w, the newest first, and maxConcurrent at most.
func (t *table) openConcurrent(w *window.Window) []*window.Window {
	var open []*window.Window
	add := func(other *window.Window) {
		if len(open) == maxConcurrent && newestFirst(other, open[maxConcurrent-1]) > 0 || !w.Overlaps(other, w.End.Mono) {
			return
		}
		i, _ := slices.BinarySearchFunc(open, other, newestFirst)
		if len(open) == maxConcurrent {
			open = open[:maxConcurrent-1]
		}
		open = slices.Insert(open, i, other)
	}
	for _, o := range t.open {
		add(&o.Window)
	}
	for _, e := range t.ending { // a recording has them among the open ones
		add(&e.Window)
	}
	return open
}

// within returns the id of the epoch that a window is a part of; of several, of the one that began last.
func (t *table) within(w *window.Window) string {
	var epoch *window.Window
	for o, until := range t.windows(w.Start.Mono, w.End.Mono) {
		if o.Holds(w, until) && (epoch == nil || newestFirst(o, epoch) < 0) {
			epoch = o
		}
	}
	if epoch == nil {
		return ""
	}
	return epoch.ID
}

// newestFirst orders windows by their start. The order is total, so that a replay finds the same windows.
func newestFirst(a, b *window.Window) int {
	return cmp.Or(cmp.Compare(b.Start.Mono, a.Start.Mono), cmp.Compare(a.ID, b.ID))
}

// findStorm adds an I/O storm to the report of a slow window, if one has begun and is not reported yet. If it began on
// several disks at the same time, as on those of a RAID, it is reported for the disk with the most windows.
func (t *table) findStorm(r *window.Report) {
	if !r.Slow || r.Others == 0 {
		return
	}
	since := t.stormSince(r)
	var worst window.Storm
	for i, disk := range r.From {
		if since[i] >= r.End.Mono || !t.storms.Observe(disk, since[i], r.End.Mono) {
			continue
		}
		if n := r.OthersOn(disk) + 1; n > worst.Windows {
			worst = window.Storm{Disk: disk, Windows: n, Since: since[i]}
		}
	}
	if worst.Windows > 0 {
		r.Storms = []window.Storm{worst}
		t.storms.Reported(worst.Disk, worst.Windows, r.Wall(worst.Since))
	}
}

// stormSince returns, for each disk of r, since when another slow window read from it; r.End if none did.
func (t *table) stormSince(r *window.Report) []time.Duration {
	since := slices.Repeat([]time.Duration{r.End.Mono}, len(r.From))
	for o := range t.endedSince(r.Start.Mono, r.End.Mono) {
		if !o.Slow || len(o.From) == 0 || !r.Overlaps(&o.Window, o.End.Mono) {
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
