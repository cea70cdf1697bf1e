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
)

// latelyEvery is how often Lately reads at most.
const latelyEvery = 10 * time.Millisecond

// lately is the newest reading that was taken for spans.
type lately struct {
	mu sync.Mutex // held while a reading is taken, so that those who need one at the same time share it
	at Moment
}

// Lately is a reading from after end, for Span: end is the wall time at which the last of some spans ended. Calls
// share one reading where it serves them all, and wait for one another, so that at most one is taken each 10 ms. Like Now
// it never asks a GPU's driver. It is the zero Moment, at once, where none is needed: when the history reaches beyond end
// already, and when end has not come yet.
func (m *Monitor) Lately(end time.Time) Moment {
	to, ok := m.history.Mono(end)
	if !ok || !m.lacks(to) {
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
	for _, s := range [...]history.Series{history.IOSome, history.HostCPUTime, history.JobCPUTime, history.DisksBytes, history.LedgerBusy} {
		if last, ok := m.history.Last(s); ok && last < to {
			return true
		}
	}
	return false
}

// present is the present moment on the monotonic clock.
func (m *Monitor) present() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stamp().Mono
}

// Span reports on a window that nobody announced: a span that ended, on this machine, from w.Start.Wall to w.End.Wall.
// w.Job is a job that is followed, or ""; where the job came to be followed only after the span's start, or is not any
// more, the report is of the whole machine. now is what Lately gave for the span's end or a later one. What the readings
// around the two ends leave open is the report's Uncertainty. The error is one of the above.
func (m *Monitor) Span(w window.Window, now Moment) (*window.Report, error) {
	switch {
	case w.End.Wall.Before(w.Start.Wall):
		return nil, ErrBackward
	case w.End.Wall.Equal(w.Start.Wall):
		return nil, ErrEmpty
	}
	var ok bool
	if w.Start.Mono, ok = m.history.Mono(w.Start.Wall); !ok {
		return nil, ErrOld
	}
	w.End.Mono, _ = m.history.Mono(w.End.Wall)
	if first, ok := m.history.First(history.LedgerBusy); !ok || w.Start.Mono < first {
		return nil, ErrOld
	}
	if w.End.Mono <= w.Start.Mono { // the wall clock was set while it lasted
		return nil, ErrEmpty
	}
	w.Next, w.StartEdge, w.EndEdge = nil, nil, nil
	if now.edge != nil {
		w.Next = &history.Next{At: now.At.Mono, Edge: now.edge}
	}
	m.mu.Lock()
	if w.End.Mono > max(m.stamp().Mono, now.At.Mono) {
		m.mu.Unlock()
		return nil, ErrFuture
	}
	if j := m.jobs[w.Job]; j == nil || w.Start.Mono < j.since {
		w.Job = ""
	}
	machine := m.around(&w)
	m.mu.Unlock()
	r := window.Make(m.history, &w, machine)
	r.Next = nil
	return r, nil
}
