package windows

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/window"
)

// retain adds the report of a window that ended. A client that has its share of them loses its oldest one.
func (t *table) retain(r *window.Report) {
	t.expire(r.End.Mono)
	if r.Client != "" {
		oldest, count := -1, 0
		for i, other := range t.ended {
			if other.Client != r.Client {
				continue
			}
			if count++; oldest < 0 {
				oldest = i
			}
		}
		if count >= t.places.Each() {
			t.ended = slices.Delete(t.ended, oldest, oldest+1)
		}
	}
	t.ended = append(t.ended, r)
}

// expire drops reports that are too old, or too many.
func (t *table) expire(now time.Duration) {
	n := max(0, len(t.ended)+1-MaxEnded)
	for n < len(t.ended) && now-t.ended[n].End.Mono > Keep {
		n++
	}
	t.ended = slices.Delete(t.ended, 0, n)
}

// endedSince yields the reports of windows that ended since a moment, the newest first. It may yield a few from before
// the moment, because windows that end at nearly the same time are kept in the order in which they are reported.
func (t *table) endedSince(since, now time.Duration) iter.Seq[*window.Report] {
	oldest := max(since-maxReportDelay, now-Keep)
	return func(yield func(*window.Report) bool) {
		for _, r := range slices.Backward(t.ended) {
			if r.End.Mono < oldest || !yield(r) {
				return
			}
		}
	}
}

// maxReportDelay is how much later than other windows one may be reported that ended before them.
const maxReportDelay = time.Second

// Ended returns the reports of windows that ended within the last hour, the oldest first, and then the estimates for
// those that have no final report yet.
func (g *Registry) Ended() []*window.Report {
	now := g.config.Readings.Present().Mono
	g.mu.Lock()
	defer g.mu.Unlock()
	g.all.expire(now)
	reports := slices.Clone(g.all.ended)
	for _, e := range g.all.ending {
		reports = append(reports, e.estimate)
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
	// The windows at work at the same time cost too much to find for each of many.
	concurrent := g.all.concurrent
	if len(open) > maxOpenConcurrent {
		concurrent = nil
	}
	reports := make([]*window.Report, len(open))
	for i, o := range open {
		reports[i] = g.config.Readings.Report(o.Window, now, concurrent)
		g.config.Judge.running(reports[i])
	}
	return reports
}

// Report returns the report of one window: up to now while it is open, and for an hour after its end. It returns nil
// for an unknown window.
func (g *Registry) Report(id string) *window.Report {
	if _, known := g.ClientOf(id); !known {
		return nil // a reading takes longer
	}
	now := g.config.Readings.Glimpse()
	g.mu.Lock()
	defer g.mu.Unlock()
	if o := g.all.open[id]; o != nil {
		concurrent := g.all.concurrent
		if len(g.all.open) > maxOpenConcurrent {
			concurrent = nil
		}
		r := g.config.Readings.Report(o.Window, now, concurrent)
		g.config.Judge.running(r)
		return r
	}
	if i := slices.IndexFunc(g.all.ending, func(e *ending) bool { return e.ID == id }); i >= 0 {
		return g.all.ending[i].estimate
	}
	g.all.expire(now.At.Mono)
	if i := slices.IndexFunc(g.all.ended, func(r *window.Report) bool { return r.ID == id }); i >= 0 {
		return g.all.ended[i]
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
	if i := slices.IndexFunc(g.all.ended, func(r *window.Report) bool { return r.ID == id }); i >= 0 {
		return g.all.ended[i].Client, true
	}
	return "", false
}

// ByStart compares the starts of two windows; of two that began at the same time, the longer one comes first.
func ByStart(a, b *window.Report) int {
	return cmp.Or(cmp.Compare(a.Start.Mono, b.Start.Mono), cmp.Compare(b.End.Mono, a.End.Mono))
}
