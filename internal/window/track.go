package window

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"
)

// Bounds of a Track.
const (
	MostOpen  = 4096               // windows open at once
	MostEnded = 4096               // reports kept
	Keep      = time.Hour          // how long a report is kept
	Longest   = 7 * 24 * time.Hour // a window open for longer was forgotten by who began it, unless it is Owned
)

var (
	// ErrTooMany says that no more windows can be open at once.
	ErrTooMany = fmt.Errorf("%d windows are open already: end some, or look for a program that begins windows and never ends them", MostOpen)
	// ErrUnknown says that no open window has that id.
	ErrUnknown = errors.New("no open window has that id: it was ended before, or never begun here")
)

// Track knows the windows that are open and the reports of those that ended lately. It is not safe for concurrent use.
type Track struct {
	open  map[string]*Window
	ended []*Report // oldest first
}

// Begin opens a window under its ID.
func (t *Track) Begin(w *Window) error {
	if len(t.open) >= MostOpen {
		return ErrTooMany
	}
	if _, taken := t.open[w.ID]; taken {
		return fmt.Errorf("a window with the id %q is open already: choose another", w.ID)
	}
	if t.open == nil {
		t.open = map[string]*Window{}
	}
	t.open[w.ID] = w
	return nil
}

// End takes a window out of the open ones.
func (t *Track) End(id string) (*Window, error) {
	w, ok := t.open[id]
	if !ok {
		return nil, ErrUnknown
	}
	delete(t.open, id)
	return w, nil
}

// Done keeps the report of a window that ended.
func (t *Track) Done(r *Report) {
	t.forget(r.End.Mono)
	t.ended = append(t.ended, r)
}

func (t *Track) forget(now time.Duration) {
	n := max(0, len(t.ended)+1-MostEnded)
	for n < len(t.ended) && now-t.ended[n].End.Mono > Keep {
		n++
	}
	t.ended = slices.Delete(t.ended, 0, n)
}

// Find is the open window with that id, or nil.
func (t *Track) Find(id string) *Window { return t.open[id] }

// Len is how many windows are open.
func (t *Track) Len() int { return len(t.open) }

// Open lists the open windows, the one that began first in front.
func (t *Track) Open() []*Window {
	open := make([]*Window, 0, len(t.open))
	for _, w := range t.open {
		open = append(open, w)
	}
	slices.SortFunc(open, func(a, b *Window) int { return cmp.Compare(a.Start.Mono, b.Start.Mono) })
	return open
}

// Ended lists the reports that are still kept, the oldest first.
func (t *Track) Ended(now time.Duration) []*Report {
	t.forget(now)
	return slices.Clone(t.ended)
}

// Back goes through the reports of windows that ended since a moment, the newest first, without those that are too old to be
// kept. What ended at nearly the same time is kept in the order in which it was told: a few from before the moment may be
// among them.
func (t *Track) Back(since, now time.Duration) iter.Seq[*Report] {
	oldest := max(since-toldLate, now-Keep)
	return func(yield func(*Report) bool) {
		for _, r := range slices.Backward(t.ended) {
			if r.End.Mono < oldest || !yield(r) {
				return
			}
		}
	}
}

// toldLate is how much later than another window one may be told of that ended before it.
const toldLate = time.Second

// OpenOnes goes through the open windows, in no order.
func (t *Track) OpenOnes() iter.Seq[*Window] { return maps.Values(t.open) }

// Overdue lists the open windows that have outlived Longest.
func (t *Track) Overdue(now time.Duration) []*Window {
	var over []*Window
	for _, w := range t.open {
		if !w.Owned && now-w.Start.Mono > Longest {
			over = append(over, w)
		}
	}
	return over
}
