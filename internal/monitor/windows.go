package monitor

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
)

// Moment is a reading of everything that was taken for the edge of a window. One Moment may end a window and begin
// the next, so that nothing falls between them.
type Moment struct {
	At   sample.Stamp
	edge *history.Edge
}

// Now takes a reading that is not kept in the history but in the windows that begin or end with it.
func (m *Monitor) Now() Moment {
	if m.config.Recorded {
		return m.recorded()
	}
	now := Moment{edge: &history.Edge{}}
	now.At = m.sampler.Read(func(source string, s *sample.Sample, err error) {
		m.problems.note(source, err)
		m.mu.Lock()
		defer m.mu.Unlock()
		m.learn(s)
		m.history.Observe(now.edge, s)
	})
	m.mu.Lock()
	defer m.mu.Unlock()
	m.split(now)
	return now
}

// split adds to a moment what the ledger's totals are at it. m.mu is held.
func (m *Monitor) split(at Moment) {
	var totals sample.Sample
	m.ledger.Peek(m.history, at.At.Mono, at.edge, &totals)
	m.history.Observe(at.edge, &totals)
}

// Begin opens a window at a moment and gives its id, which is w.ID where that is set.
func (m *Monitor) Begin(w window.Window, at Moment) (string, error) {
	if !w.Kind.Valid() {
		return "", fmt.Errorf("%q is no kind of window: use model_load, epoch, checkpoint or custom", w.Kind)
	}
	if w.ID == "" {
		w.ID = NewID()
	}
	w.Start, w.StartEdge = at.At, at.edge
	m.mu.Lock()
	defer m.mu.Unlock()
	return w.ID, m.track.Begin(&w)
}

// End closes a window at a moment and reports on it. The error is window.ErrUnknown for one that is not open.
func (m *Monitor) End(id string, at Moment) (*window.Report, error) { return m.end(id, at, false) }

// Cut closes a window that did not end by itself: its report says that it is unfinished.
func (m *Monitor) Cut(id string, at Moment) (*window.Report, error) { return m.end(id, at, true) }

// Drop forgets an open window without a report.
func (m *Monitor) Drop(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, _ = m.track.End(id) // ErrUnknown: it is forgotten already
}

func (m *Monitor) end(id string, at Moment, unfinished bool) (*window.Report, error) {
	m.mu.Lock()
	w, err := m.track.End(id)
	if err != nil {
		m.mu.Unlock()
		return nil, err
	}
	w.Unfinished = w.Unfinished || unfinished
	r := m.report(w, at)
	m.track.Done(r)
	listeners := m.onEnd
	m.mu.Unlock()
	for _, tell := range listeners {
		tell(r)
	}
	return r, nil
}

// report makes the report of w as of a moment. m.mu is held.
func (m *Monitor) report(w *window.Window, at Moment) *window.Report {
	w.End, w.EndEdge = at.At, at.edge
	machine := window.Machine{GPUs: m.gpuIDs(), Pressure: m.sees(history.IOSome)}
	machine.Leaves = m.history.Known(history.DiskReads) // also one that left meanwhile
	if j := m.jobs[w.Job]; j != nil {
		machine.Scope = j.ledgerScope()
		machine.Mounts = slices.Clone(j.mounts)
	}
	return window.Make(m.history, w, machine)
}

func (m *Monitor) sees(s history.Series) bool {
	_, ok := m.history.Last(s)
	return ok
}

// OnEnd has tell called with the report of each window that ends from now on, on the goroutine that ends it.
func (m *Monitor) OnEnd(tell func(*window.Report)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.onEnd = append(m.onEnd, tell)
}

// Running reports on the windows that are open, each up to now.
func (m *Monitor) Running() []*window.Report {
	now := m.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	open := m.track.Open()
	reports := make([]*window.Report, 0, len(open))
	for _, w := range open {
		soFar := *w
		reports = append(reports, m.report(&soFar, now))
	}
	return reports
}

// Report is the report of one window: up to now while it is open, and for an hour after its end. It is nil for one that
// is not known.
func (m *Monitor) Report(id string) *window.Report {
	now := m.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	if w := m.track.Find(id); w != nil {
		soFar := *w
		return m.report(&soFar, now)
	}
	ended := m.track.Ended(now.At.Mono)
	if i := slices.IndexFunc(ended, func(r *window.Report) bool { return r.ID == id }); i >= 0 {
		return ended[i]
	}
	return nil
}

// Open is how many windows are open.
func (m *Monitor) Open() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.track.Len()
}

// Ended gives the reports of windows that ended within the last hour.
func (m *Monitor) Ended() []*window.Report {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.track.Ended(m.stamp().Mono)
}

// NewID is 64 random bits, as a span's id is.
func NewID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the program if the kernel gives no randomness
	return hex.EncodeToString(b[:])
}
