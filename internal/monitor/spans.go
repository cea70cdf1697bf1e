package monitor

import (
	"errors"
	"sync"
	"time"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/window"
)

// Why a span is not reported on.
var (
	ErrBackward = errors.New("the span ends before it starts")
	ErrEmpty    = errors.New("the span has no length")
	ErrFuture   = errors.New("the span ends later than this machine's clock")
	ErrOld      = errors.New("the span began before what is kept")
	ErrClock    = errors.New("this machine's clock was set while the span lasted, or showed its times twice")
)

// latelyEvery is how often a reading is taken for spans at most.
const latelyEvery = 10 * time.Millisecond

// lately is the newest reading that was taken for spans.
type lately struct {
	mu sync.Mutex // held while a reading is taken, so that those who need one at the same time share it
	at Moment
}

// after is a reading from after a moment. Calls share one reading where it serves them all, and wait for one another, so
// that at most one is taken each 10 ms. Like Now it never asks a GPU's driver. It is the zero Moment, at once, where none
// is needed: when the history reaches beyond that moment already, and when it has not come yet.
func (m *Monitor) after(to time.Duration) Moment {
	if !m.lacks(to) {
		return Moment{}
	}
	m.lately.mu.Lock()
	defer m.lately.mu.Unlock()
	last := m.lately.at.At.Mono
	if m.lately.at.edge != nil {
		if last >= to {
			return m.lately.at
		}
		time.Sleep(latelyEvery - (m.present() - last))
	}
	m.lately.at = m.glance()
	return m.lately.at
}

// lacks says whether some source has no row yet from after a moment that has passed.
func (m *Monitor) lacks(to time.Duration) bool {
	if to > m.present() {
		return false
	}
	for _, s := range [...]history.Series{history.IOSome, history.HostCPUTime, history.DisksBytes, history.LedgerBusy} {
		if last, ok := m.history.Last(s); ok && last < to {
			return true
		}
	}
	last, ok := m.history.Last(history.JobCPUTime)
	return ok && last < to && len(m.history.IDs(history.JobCPUTime)) > 0
}

// present is the present moment on the monotonic clock.
func (m *Monitor) present() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stamp().Mono
}

// Place finds the time of a span that ended, from w.Start.Wall to w.End.Wall, and says why it cannot be reported on: one of
// the errors above.
func (m *Monitor) Place(w *window.Window) error {
	length := w.End.Wall.Sub(w.Start.Wall)
	switch {
	case length < 0:
		return ErrBackward
	case length == 0:
		return ErrEmpty
	}
	first, ok := m.history.First(history.LedgerBusy)
	if !ok {
		return ErrOld
	}
	now := m.present()
	start, okStart := m.history.Mono(w.Start.Wall, now)
	end, okEnd := m.history.Mono(w.End.Wall, now)
	switch {
	case okStart && start < first:
		return ErrOld
	case okEnd && end > now:
		return ErrFuture
	case !okStart || !okEnd || (end-start-length).Abs() > twiceRead:
		return ErrClock
	}
	w.Start.Mono, w.End.Mono = start, end
	return nil
}

// twiceRead is how much the length of a span may differ by the two clocks, which are read one after the other.
const twiceRead = 4 * time.Millisecond

// Span reports on a window that nobody announced: a span that Place has placed. w.Job is a job that is followed, or "";
// where the job came to be followed only after the span's start, or is not any more, or has no ledger of all of that time,
// the report is of the whole machine. For a span that ended just now a reading is taken first, which others that ended
// then share: at most one each 10 ms, and none of a GPU's driver. What the readings around the two ends leave open is the
// report's Uncertainty.
func (m *Monitor) Span(w window.Window) *window.Report {
	w.Next, w.StartEdge, w.EndEdge = nil, nil, nil
	if now := m.after(w.End.Mono); now.edge != nil {
		w.Next = &history.Next{At: now.At.Mono, Edge: now.edge}
	}
	r := window.Make(m.history, &w, m.beside(&w))
	if !r.Split && w.Job != "" {
		w.Job = ""
		r = window.Make(m.history, &w, m.beside(&w))
	}
	r.Next = nil
	m.mu.Lock()
	defer m.mu.Unlock()
	m.compare(r, window.Seen{}, true)
	return r
}

// beside is what a report needs to know besides the history; not other windows, which are looked for while m.mu is held. A
// job that is not known for all of the window is left out.
func (m *Monitor) beside(w *window.Window) window.Machine {
	m.mu.Lock()
	defer m.mu.Unlock()
	if j := m.jobs[w.Job]; j == nil || w.Start.Mono < j.since {
		w.Job = ""
	}
	return m.known(w)
}
