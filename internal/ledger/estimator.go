package ledger

import (
	"cmp"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/ledger/chain"
	"github.com/stallspan/stallspan/internal/sample"
)

// Estimator keeps a running total for each target, from the scheduler's events or moments, and where both are missing
// from pressure, disk queues and CPU time. Totals are cumulative like counters, so the ledger of a window is a
// difference between two moments, however long the window is. It is not safe for concurrent use.
type Estimator struct {
	history  *history.History
	timeline *chain.Timeline // nil until the scheduler reports something
	moments  *chain.Moments  // nil until threads are looked at
	accounts []*account
	totals   []history.LedgerTotals // of all accounts at the end of the last cell
	ends     []history.Point        // of the cells that are closed now, with their
	rows     [][]history.LedgerTotals
	opened   bool          // an account began at the last end
	failed   error         // of SetTargets, for the next Advance
	behind   bool          // there is time that is not divided yet, because more is to come together
	memory   blocks        // of all accounts
	at       time.Duration // end of the last cell
	appended time.Duration // newest row in the history
	forgot   time.Duration // end of the timeline when it forgot what is old

	forgotMoments time.Duration // the same of moments
}

// New returns an Estimator without targets.
func New(h *history.History) *Estimator { return &Estimator{history: h} }

// SetTargets replaces the targets. A target that stays keeps its totals. Time that was left to come together is divided
// for the targets of that time.
func (e *Estimator) SetTargets(targets []Target) {
	if to, ok := e.reaches(); ok && e.behind {
		_, e.failed = e.advance(to, nil)
		e.behind = false
	}
	accounts := make([]*account, 0, len(targets))
	for _, t := range targets {
		if i := slices.IndexFunc(e.accounts, func(a *account) bool { return a.target.same(t) }); i >= 0 {
			e.accounts[i].target = t
			e.accounts[i].schedule.lead(t.Leader)
			e.accounts[i].moments.lead(t.Leader)
			accounts = append(accounts, e.accounts[i])
			continue
		}
		a := newAccount(t)
		a.schedule.names, a.schedule.memory = &names{}, &e.memory
		a.moments.names, a.moments.memory = &names{}, &e.memory
		if e.timeline != nil {
			a.schedule.timeline = e.timeline
		}
		if e.moments != nil {
			a.moments.timeline = e.moments
		}
		a.schedule.lead(t.Leader)
		a.moments.lead(t.Leader)
		accounts = append(accounts, a)
	}
	e.accounts = accounts
}

// Waits lists what a target's leading thread waited for, as other, from one moment to another.
func (e *Estimator) Waits(id string, from, to time.Duration) Waits {
	for _, a := range e.accounts {
		if a.totals.ID == id {
			s := a.evidence()
			return s.names.waits(from, to, s.open(from, to))
		}
	}
	return nil
}

// Steps returns the steps of the thread that led a target from one moment to another. It may have ended since.
func (e *Estimator) Steps(id string, from, to time.Duration) (Steps, bool) {
	for _, a := range e.accounts {
		if a.totals.ID == id {
			return stepsOf(a.schedule.handovers(from, to))
		}
	}
	return Steps{}, false
}

// keepSchedule is how long the states of threads are kept: until every GPU's driver has reported its samples.
func keepSchedule() time.Duration { return history.Lag + 2*time.Second + minSampled }

// forgetEvery is the time between two visits of all threads, to drop what is old.
const forgetEvery = time.Second

// Learn takes over what the scheduler reported. It copies what it keeps.
func (e *Estimator) Learn(s *sample.Schedule) {
	if e.timeline == nil {
		e.timeline = chain.NewTimeline()
	}
	e.timeline.Learn(s)
	e.refer(e.timeline, &e.forgot, func(a *account) *schedule { return &a.schedule })
}

// Look takes over what threads were in at random moments. It copies what it keeps.
func (e *Estimator) Look(m *sample.Moments) {
	if e.moments == nil {
		e.moments = chain.NewMoments()
	}
	e.moments.Learn(m)
	e.refer(e.moments, &e.forgotMoments, func(a *account) *schedule { return &a.moments })
}

// refer has all accounts use evidence that has more than before. Once in forgetEvery it drops what is old.
func (e *Estimator) refer(to threads, forgot *time.Duration, of func(*account) *schedule) {
	for _, a := range e.accounts {
		s := of(a)
		s.timeline = to
		s.choose()
		s.checkpoint()
	}
	if until := to.Until(); until-*forgot >= forgetEvery {
		to.Forget(until - keepSchedule())
		*forgot = until
	}
}

// collecting reports whether the time up to a moment need not be divided yet. It depends on nothing but readings: a
// replay has no others.
func (e *Estimator) collecting(to time.Duration) bool {
	return to-e.at < collects && !e.hasUnopened() && e.rarely()
}

// rarely reports whether jobs are read once a second, and the machine more often. What jobs do meanwhile is in events
// or moments.
func (e *Estimator) rarely() bool {
	jobs, known := e.history.Spacing(history.JobCPUTime), e.timeline != nil || e.moments != nil
	return known && jobs >= readRarely && jobs.Seconds() >= readRarer*e.history.Spacing(history.HostCPUTime).Seconds()
}

// reaches returns the newest moment up to which time can be divided.
func (e *Estimator) reaches() (to time.Duration, ok bool) {
	to, ok = newestCommon(e.history, sources[:])
	if e.timeline != nil && to-e.timeline.Until() < history.Lag {
		to = min(to, e.timeline.Until())
	}
	if e.moments != nil && to-e.moments.Until() < history.Lag {
		to = min(to, e.moments.Until())
	}
	return to, ok
}

// Advance divides the time up to the newest moment that every source has reached, and adds the totals to the history.
// edges are in the order of their time. It adds the totals at each edge that it reaches and returns the number of these
// edges. Where jobs are read rarely, it may wait until some seconds have come together, unless an edge waits. The error
// is history.ErrFull if a target found no room.
func (e *Estimator) Advance(edges []history.Point) (reached int, err error) {
	to, ok := e.reaches()
	if !ok {
		return 0, nil
	}
	if e.behind = len(edges) == 0 && e.collecting(to); e.behind {
		return 0, nil
	}
	reached, err = e.advance(to, edges)
	err, e.failed = cmp.Or(err, e.failed), nil
	return reached, err
}

func (e *Estimator) advance(to time.Duration, edges []history.Point) (reached int, err error) {
	err = e.recallAll()
	for ; reached < len(edges) && edges[reached].At <= to; reached++ {
		opened, failed := e.divide(edges[reached])
		err = cmp.Or(failed, err)
		if opened {
			err = cmp.Or(e.append(), err) // a column exists from its first row on
		}
		// An edge gets no row otherwise: many edges would push older rows out.
		e.history.ObserveLedgers(edges[reached].Edge, e.totals)
	}
	if to <= e.at {
		return reached, err
	}
	_, failed := e.divide(history.Point{At: to})
	return reached, cmp.Or(e.append(), failed, err)
}

// append adds the totals to the history, which ignores rows that are not later than its newest one.
func (e *Estimator) append() error {
	if len(e.totals) == 0 {
		return nil
	}
	e.appended = max(e.appended, e.at)
	return e.history.AppendLedgers(e.at, e.totals)
}

// divide closes cells up to p and appends a row for each but the last. There are many at a time where a GPU's driver is
// read once a second. opened reports whether an account began at p.
func (e *Estimator) divide(p history.Point) (opened bool, err error) {
	if first := e.appended + 1; e.appended > 0 && first < p.At && e.hasUnopened() {
		e.close(history.Point{At: first}) // the earliest moment for which a row can be added
		err = e.append()
	}
	next := p.At
	for _, a := range e.accounts {
		if a.opened && p.At-a.end.At < maxBacklog {
			next = min(next, a.end.At+maxCell)
		}
	}
	e.ends = e.ends[:0]
	for ; next < p.At-maxCell/2; next += maxCell {
		if e.ends = append(e.ends, history.Point{At: next}); len(e.ends) == maxEnds {
			err = cmp.Or(e.closeAll(p), e.append(), err)
			e.ends = e.ends[:0]
		}
	}
	e.ends = append(e.ends, p)
	err = cmp.Or(e.closeAll(p), err)
	return e.opened, err
}

// maxEnds is how many cells are closed at once: more than come at a time while every source is read.
const maxEnds = 64

func (e *Estimator) hasUnopened() bool {
	return slices.ContainsFunc(e.accounts, func(a *account) bool { return !a.opened })
}

// close ends a cell of every account at p.
func (e *Estimator) close(p history.Point) {
	e.ends = append(e.ends[:0], p)
	_ = e.closeAll(p) // it appends none
}

// closeAll ends cells of every account at ends, and appends a row for each but the last. Accounts take turns: what one
// needs is in the cache of the processor then, and the memory of its blocks serves the next one. No account changes
// before horizon what its cells are divided by. opened is whether one began at the last end.
func (e *Estimator) closeAll(horizon history.Point) (err error) {
	e.opened = false
	for len(e.rows) < len(e.ends) {
		e.rows = append(e.rows, nil)
	}
	for i := range e.ends {
		e.rows[i] = e.rows[i][:0]
	}
	for _, a := range e.accounts {
		a.schedule.cells(horizon)
		a.moments.cells(horizon)
		for i, p := range e.ends {
			if !a.opened && p.At <= e.appended {
				continue // a new GPU with readings older than the newest row: none could be added for it
			}
			e.opened = e.opened || !a.opened && i == len(e.ends)-1
			a.closeCell(e.history, p)
			e.rows[i] = append(e.rows[i], a.totals)
		}
		a.schedule.last, a.moments.last = nil, nil // their memory is the next account's
	}
	for i, p := range e.ends {
		e.totals, e.at = e.rows[i], p.At
		if i < len(e.ends)-1 {
			err = cmp.Or(e.append(), err)
		}
	}
	return err
}

// Estimate adds the present estimate of the totals at an edge to the edge. The accounts stay as they are.
func (e *Estimator) Estimate(edge history.Point) {
	complete, _ := newestCommon(e.history, sources[:len(sources)-1])
	totals := make([]history.LedgerTotals, 0, len(e.accounts))
	for _, a := range e.accounts {
		if a.opened {
			totals = append(totals, a.extrapolate(e.history, edge, complete))
		}
	}
	e.history.ObserveLedgers(edge.Edge, totals)
}

// sources has one series of each source that is needed. The GPU is last.
var sources = [...]history.Series{
	history.IOSome, history.HostCPUTime, history.JobCPUTime, history.DisksBytes, history.GPUBusyTime,
}

// newestCommon returns the newest moment for which all series have a reading. It leaves out a source that is silent. ok
// is false if there is no reading at all.
func newestCommon(h *history.History, all []history.Series) (at time.Duration, ok bool) {
	var newest time.Duration
	for _, s := range all {
		last, _ := h.Last(s)
		newest = max(newest, last)
	}
	at = newest
	for _, s := range all {
		silent := maxSilence
		if s == history.GPUBusyTime {
			silent = history.Lag
		}
		if last, known := h.Last(s); known && newest-last <= silent {
			at = min(at, last)
		}
	}
	return at, newest > 0
}
