package windows

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/monitor/sampling"
	"github.com/stallspan/stallspan/internal/trust"
	"github.com/stallspan/stallspan/internal/window"
)

// retained is the report of a window that ended.
type retained struct {
	*window.Report
	at time.Duration // monotonic: when it was made, which is after the end of a detected window
}

// retain adds the report of a window that ended, in the order of the ends. A client that has its share of them loses
// the one that was made first.
func (t *table) retain(r *window.Report, now time.Duration) {
	now = max(now, r.End.Mono) // a replay's readings may end before the window
	t.expire(now)
	if r.Client != "" {
		sharer := trust.Sharer(r.Client)
		t.makeRoom(t.places.Each(), func(other *window.Report) bool { return trust.Sharer(other.Client) == sharer })
	}
	if len(t.ended) >= MaxEnded {
		t.makeRoom(MaxEnded, func(*window.Report) bool { return true })
	}
	i := len(t.ended)
	for i > 0 && t.ended[i-1].End.Mono > r.End.Mono {
		i--
	}
	t.ended = slices.Insert(t.ended, i, retained{r, now})
}

// makeRoom drops the report that was made first, of those that count, if there are so many of them.
func (t *table) makeRoom(most int, counts func(*window.Report) bool) {
	first, count := -1, 0
	for i, old := range t.ended {
		if !counts(old.Report) {
			continue
		}
		if count++; first < 0 || old.at < t.ended[first].at {
			first = i
		}
	}
	if count >= most {
		t.ended = slices.Delete(t.ended, first, first+1)
	}
}

// expire drops reports that were made too long ago.
func (t *table) expire(now time.Duration) {
	t.ended = slices.DeleteFunc(t.ended, func(old retained) bool { return now-old.at > Keep })
}

// endedSince yields the reports of windows that ended since a moment, the newest first.
func (t *table) endedSince(since, now time.Duration) iter.Seq[*window.Report] {
	oldest := max(since, now-Keep)
	return func(yield func(*window.Report) bool) {
		for _, r := range slices.Backward(t.ended) {
			if r.End.Mono < oldest || !yield(r.Report) {
				return
			}
		}
	}
}

// windows yields the windows that are open or have ended since a moment, with their ends, or now. Those without a
// report come last.
func (t *table) windows(since, now time.Duration) iter.Seq2[*window.Window, time.Duration] {
	return func(yield func(w *window.Window, end time.Duration) bool) {
		for r := range t.endedSince(since, now) {
			if !yield(&r.Window, r.End.Mono) {
				return
			}
		}
		for _, o := range t.open {
			if !yield(&o.Window, now) {
				return
			}
		}
		for _, e := range t.ending {
			if !yield(&e.Window, e.facts.At.At.Mono) {
				return
			}
		}
	}
}

// Ended returns the reports of the last hour in the order in which the windows ended, and then the estimates for those
// that have no final report yet.
func (g *Registry) Ended() []*window.Report {
	g.awaitReports(false)
	now := g.config.Readings.Present().Mono
	g.mu.Lock()
	defer g.mu.Unlock()
	g.all.expire(now)
	reports := make([]*window.Report, 0, len(g.all.ended)+len(g.all.ending))
	for _, r := range g.all.ended {
		reports = append(reports, r.Report)
	}
	for _, e := range g.all.ending {
		if e.estimate != nil { // else it has ended just now
			reports = append(reports, e.estimate)
		}
	}
	return reports
}

// Running returns reports of the open windows, each up to now, the one that began first in front.
func (g *Registry) Running() []*window.Report {
	now := g.config.Readings.Glimpse()
	g.mu.Lock()
	defer g.mu.Unlock()
	open := make([]*openWindow, 0, len(g.all.open))
	for _, o := range g.all.open {
		open = append(open, o)
	}
	slices.SortFunc(open, func(a, b *openWindow) int { return cmp.Compare(a.Start.Mono, b.Start.Mono) })
	reports := make([]*window.Report, len(open))
	for i, o := range open {
		reports[i] = g.soFar(o, now)
	}
	return reports
}

// soFar reports on an open window up to now. The windows at work at the same time cost too much to find for each of
// many.
func (g *Registry) soFar(o *openWindow, now sampling.Moment) *window.Report {
	var concurrent sampling.Concurrent
	if len(g.all.open) <= maxOpenConcurrent {
		concurrent = g.all.concurrent(&o.Window, now.At.Mono)
	}
	r := g.config.Readings.Report(o.Window, now, concurrent)
	r.Within = g.all.within(&r.Window)
	return r
}

// Report returns the report of one window: up to now while it is open, and for an hour after it was made. It returns
// nil for an unknown window.
func (g *Registry) Report(id string) *window.Report {
	if _, known := g.ClientOf(id); !known {
		return nil // a reading takes longer
	}
	g.awaitReports(false)
	now := g.config.Readings.Glimpse()
	g.mu.Lock()
	defer g.mu.Unlock()
	if o := g.all.open[id]; o != nil {
		return g.soFar(o, now)
	}
	if i := slices.IndexFunc(g.all.ending, func(e *ending) bool { return e.ID == id }); i >= 0 {
		return g.all.ending[i].estimate
	}
	g.all.expire(now.At.Mono)
	if i := slices.IndexFunc(g.all.ended, func(r retained) bool { return r.ID == id }); i >= 0 {
		return g.all.ended[i].Report
	}
	return nil
}

// ClientOf returns who announced a window: see window.Window. known is false if there is no window with that id.
func (g *Registry) ClientOf(id string) (client string, known bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if o := g.all.open[id]; o != nil {
		return o.Client, true
	}
	if i := slices.IndexFunc(g.all.ending, func(e *ending) bool { return e.ID == id }); i >= 0 {
		return g.all.ending[i].Client, true
	}
	if i := slices.IndexFunc(g.all.ended, func(r retained) bool { return r.ID == id }); i >= 0 {
		return g.all.ended[i].Client, true
	}
	return "", false
}
