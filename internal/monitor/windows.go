package monitor

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/recording"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
)

// Moment is a reading of everything that was taken for the edge of a window. One Moment may end a window and begin
// the next, so that nothing falls between them.
type Moment struct {
	At     sample.Stamp
	edge   *history.Edge
	number uint64 // in the journal
}

func (at Moment) point() history.Point { return history.Point{At: at.At.Mono, Edge: at.edge} }

// Now takes a reading that is not kept in the history but in the windows that begin or end with it. It never asks a
// GPU's driver: what that tells of the moment comes later, and is added then.
func (m *Monitor) Now() Moment {
	if m.config.Recorded {
		return m.recorded()
	}
	now := m.read()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.journal.mark(recording.Mark{Op: recording.Edge, Edge: now.number, At: &now.At})
	m.settle(now)
	return now
}

// read takes the readings of a moment.
func (m *Monitor) read() Moment {
	m.mu.Lock()
	now := Moment{edge: &history.Edge{}, number: m.journal.edge()}
	m.mu.Unlock()
	now.At = m.sampler.Read(func(source string, s *sample.Sample, err error) {
		m.problems.note(source, err)
		m.mu.Lock()
		defer m.mu.Unlock()
		m.journal.reading(source, now.number, s)
		m.observe(now.edge, s)
	})
	return now
}

func (m *Monitor) observe(edge *history.Edge, s *sample.Sample) {
	m.learn(s)
	m.history.Observe(edge, s)
}

// settle adds to a moment what the ledger's totals are at it: at once, or, where a GPU has told nothing yet of that
// moment, when it has. m.mu is held.
func (m *Monitor) settle(at Moment) {
	if !m.history.Lags(at.point()) {
		m.peek(at)
		return
	}
	i := len(m.waiting)
	for i > 0 && m.waiting[i-1].At.Mono > at.At.Mono {
		i--
	}
	m.waiting = slices.Insert(m.waiting, i, at)
}

// peek adds to a moment what the ledger's totals are at it, as far as that can be said now. m.mu is held.
func (m *Monitor) peek(at Moment) {
	m.ledger.Estimate(at.point())
}

// foreseen is an edge that is needed now. One that still waits for a GPU goes on waiting, for the window that may begin
// at it; what is needed now is a copy in which the GPU went on as it did last. m.mu is held.
func (m *Monitor) foreseen(edge *history.Edge) *history.Edge {
	i := slices.IndexFunc(m.waiting, func(at Moment) bool { return at.edge == edge })
	if i < 0 {
		return edge
	}
	at := m.waiting[i]
	at.edge = edge.Clone()
	m.peek(at)
	return at.edge
}

// Begin opens a window at a moment and gives its id, which is w.ID where that is set.
func (m *Monitor) Begin(w window.Window, at Moment) (string, error) {
	if !w.Kind.Valid() {
		return "", fmt.Errorf("%q is no kind of window: use model_load, epoch, checkpoint or custom", w.Kind)
	}
	if w.ID == "" {
		w.ID = NewID()
	}
	if !m.config.Recorded {
		w.Seen = m.look(&w)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	err := m.begin(&w, at)
	if err == nil && !m.config.Recorded {
		m.watchReaders(&w)
	}
	return w.ID, err
}

// begin opens a window. m.mu is held.
func (m *Monitor) begin(w *window.Window, at Moment) error {
	w.Start, w.StartEdge, w.Ceilings = at.At, at.edge, m.ceilings.All()
	if err := m.track.Begin(w); err != nil {
		return err
	}
	if m.journal.to != nil {
		m.journal.mark(recording.Mark{Op: recording.Begin, Edge: at.number, At: &at.At, ID: w.ID, Window: recorded(w)})
	}
	return nil
}

// End closes a window at a moment and reports on it. The error is window.ErrUnknown for one that is not open.
func (m *Monitor) End(id string, at Moment) (*window.Report, error) {
	return m.end(id, at, m.fetchers(id, at), false, nil)
}

// Cut closes a window that did not end by itself: its report says that it is unfinished.
func (m *Monitor) Cut(id string, at Moment) (*window.Report, error) {
	return m.end(id, at, m.fetchers(id, at), true, nil)
}

// Loosen says of an open window that it began with the program or is about to end with it: its length is then compared
// with nothing, and not learned from.
func (m *Monitor) Loosen(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if w := m.track.Find(id); w != nil {
		w.ApproximateBounds = true
	}
}

// Drop forgets an open window without a report.
func (m *Monitor) Drop(id string) {
	m.forgetReaders(id)
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, err := m.track.End(id); err == nil { // else it is forgotten already
		m.journal.mark(recording.Mark{Op: recording.Drop, ID: id})
	}
}

// end is End. was is by what a recorded window was judged; nil for one that is to be judged now.
func (m *Monitor) end(id string, at Moment, by []recording.Fetcher, unfinished bool, was *window.Limits) (*window.Report, error) {
	m.mu.Lock()
	late := m.history.Lags(at.point())
	m.mu.Unlock()
	if late {
		m.CatchUp()
	}
	var again window.Seen
	if !unfinished { // it has just been read from, so looking there does not hang
		again = m.lookAgain(id)
	}
	m.mu.Lock()
	w, err := m.track.End(id)
	if err != nil {
		m.mu.Unlock()
		return nil, err
	}
	by = by[:min(len(by), mostFetchers)]
	m.ours(by, w.Job)
	w.Unfinished = w.Unfinished || unfinished
	if len(m.waiting) > 0 {
		m.advance()
		w.StartEdge = m.foreseen(w.StartEdge)
		at.edge = m.foreseen(at.edge)
	}
	r := m.reportBy(w, at, by)
	m.growth.Learn(r)
	if was != nil {
		r.Took(*was)
	} else {
		was = m.compare(r, again, true)
	}
	m.journal.mark(recording.Mark{
		Op: recording.End, Edge: at.number, At: &at.At, ID: id, Unfinished: unfinished, Readers: by, Limits: limitsNow(was),
	})
	over, watching := m.calmed(r.End)
	m.stormy(r)
	r.StartEdge, r.EndEdge = nil, nil // a report is kept for an hour, and needs them no more
	m.track.Done(r)
	listeners := m.onEnd
	m.mu.Unlock()
	tellAll(over, watching)
	for _, tell := range listeners {
		(*tell)(r)
	}
	return r, nil
}

// report makes the report of w as of a moment. m.mu is held.
func (m *Monitor) report(w *window.Window, at Moment) *window.Report {
	return m.reportBy(w, at, nil)
}

// reportBy is report, with the processes that fetched most. m.mu is held.
func (m *Monitor) reportBy(w *window.Window, at Moment, by []recording.Fetcher) *window.Report {
	w.End, w.EndEdge = at.At, at.edge
	machine := m.around(w)
	machine.Readers = readersOf(by)
	return window.Make(m.history, w, machine)
}

// around is what a report needs to know besides the history. m.mu is held.
func (m *Monitor) around(w *window.Window) window.Machine {
	machine := m.known(w)
	if m.asksOthers(w) {
		machine.Others = func() []window.Other { return m.others(w) }
	}
	return machine
}

// known is the same without other windows. m.mu is held.
func (m *Monitor) known(w *window.Window) window.Machine {
	machine := window.Machine{GPUs: m.gpuIDs(), Pressure: m.sees(history.IOSome)}
	machine.Lost = m.history.Left(history.GPUBusyTime, w.Start.Mono)
	machine.Leaves = m.history.Known(history.DiskReadIOs) // also one that left meanwhile
	machine.Ceilings, machine.Cores = m.ceilings.All(), len(m.latest.Cores.Cores)
	machine.Drives = m.latest.Drives.Drives
	if j := m.jobs[w.Job]; j != nil {
		machine.Target = j.target()
		machine.Mounts = slices.Clone(j.mounts)
		machine.Held = slices.Clone(j.gpus)
		machine.Scope = j.whose
		machine.Silent = m.unseen(j.id)
		machine.Unseen = !j.own && machine.Silent
	}
	return machine
}

// unseen says that what a job reads cannot be told. m.mu is held.
func (m *Monitor) unseen(job string) bool {
	i := slices.IndexFunc(m.latest.Jobs.Jobs, func(j sample.Job) bool { return j.ID == job })
	return i >= 0 && !m.latest.Jobs.Jobs[i].HasIO
}

func (m *Monitor) sees(s history.Series) bool {
	_, ok := m.history.Last(s)
	return ok
}

// OnEnd has tell called with the report of each window that ends from now on, on the goroutine that ends it, until forget
// is called.
func (m *Monitor) OnEnd(tell func(*window.Report)) (forget func()) { return listen(m, &m.onEnd, tell) }

// listen adds a listener to a list, and gives what takes it out again. Lists are copied, for somebody may be going
// through the old one.
func listen[T any](m *Monitor, list *[]*func(T), tell func(T)) (forget func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	listener := &tell
	*list = append(slices.Clone(*list), listener)
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		*list = slices.DeleteFunc(slices.Clone(*list), func(l *func(T)) bool { return l == listener })
	}
}

// glance is a moment to which windows are looked at that stay open.
func (m *Monitor) glance() Moment {
	if m.config.Recorded {
		return m.recorded()
	}
	now := m.read()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.peek(now)
	return now
}

// Running reports on the windows that are open, each up to now.
func (m *Monitor) Running() []*window.Report {
	now := m.glance()
	m.mu.Lock()
	defer m.mu.Unlock()
	open := m.track.Open()
	reports := make([]*window.Report, 0, len(open))
	for _, w := range open {
		reports = append(reports, m.soFar(w, now))
	}
	return reports
}

// soFar reports on a window that goes on. m.mu is held.
func (m *Monitor) soFar(w *window.Window, now Moment) *window.Report {
	copied := *w
	r := m.report(&copied, now)
	m.compare(r, window.Seen{}, false)
	if tail, long := copied.Tail(); long {
		late := window.Make(m.history, &tail, m.around(&tail))
		r.Recent = &window.Recent{Verdict: late.Verdict, Finding: late.Finding}
	}
	return r
}

// Report is the report of one window: up to now while it is open, and for an hour after its end. It is nil for one that
// is not known.
func (m *Monitor) Report(id string) *window.Report {
	now := m.glance()
	m.mu.Lock()
	defer m.mu.Unlock()
	if w := m.track.Find(id); w != nil {
		return m.soFar(w, now)
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
