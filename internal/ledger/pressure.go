package ledger

import (
	"cmp"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/ledger/chain"
	"github.com/stallspan/stallspan/internal/sample"
)

// maxCell is the longest stretch that is divided in one piece. A cell has only sums, so a longer one would mistake
// waiting and idleness that took turns for waiting and idleness that coincided.
const maxCell = 100 * time.Millisecond

// maxBacklog is the longest stretch that is divided in cells. A longer one had no readings in it.
const maxBacklog = time.Minute

// Pressure is the Estimator that uses pressure stall information, disk queues and the CPU time of threads.
type Pressure struct {
	history  *history.History
	timeline *chain.Timeline // nil until the scheduler reports something
	accounts []*account
	gpus     []string               // of the accounts
	totals   []history.LedgerTotals // of all accounts at the end of the last cell
	at       time.Duration          // end of the last cell
	appended time.Duration          // newest row in the history
	forgot   time.Duration          // end of the timeline when it forgot what is old
}

// NewPressure returns a Pressure without targets.
func NewPressure(h *history.History) *Pressure { return &Pressure{history: h} }

// SetTargets replaces the targets. A target that stays keeps its totals.
func (e *Pressure) SetTargets(targets []Target) {
	accounts := make([]*account, 0, len(targets))
	e.gpus = e.gpus[:0]
	for _, t := range targets {
		if t.GPU != "" && !slices.Contains(e.gpus, t.GPU) {
			e.gpus = append(e.gpus, t.GPU)
		}
		if i := slices.IndexFunc(e.accounts, func(a *account) bool { return a.target.same(t) }); i >= 0 {
			e.accounts[i].target = t
			e.accounts[i].schedule.lead(t.Leader)
			accounts = append(accounts, e.accounts[i])
			continue
		}
		a := newAccount(t)
		a.schedule.timeline, a.schedule.names = e.timeline, &names{}
		a.schedule.lead(t.Leader)
		accounts = append(accounts, a)
	}
	e.accounts = accounts
}

// Reason names what a target's leading thread waited for most, in calls of a kind, from one moment to another.
func (e *Pressure) Reason(id string, kind chain.ReasonKind, from, to time.Duration) string {
	for _, a := range e.accounts {
		if a.totals.ID == id {
			return a.schedule.names.of(kind, from, to)
		}
	}
	return ""
}

// Waits lists what a target's leading thread waited for in calls of a kind, from one moment to another.
func (e *Pressure) Waits(id string, kind chain.ReasonKind, from, to time.Duration) []Wait {
	for _, a := range e.accounts {
		if a.totals.ID == id {
			return a.schedule.names.waits(kind, from, to)
		}
	}
	return nil
}

// keepSchedule is how long the states of threads are kept: until every GPU's driver has reported its samples.
const keepSchedule = history.Lag + 2*time.Second

// forgetEvery is the time between two visits of all threads, to drop what is old.
const forgetEvery = time.Second

// Learn takes over what the scheduler reported.
func (e *Pressure) Learn(s *sample.Schedule) {
	if e.timeline == nil {
		e.timeline = chain.NewTimeline()
	}
	e.timeline.Learn(s)
	for _, a := range e.accounts {
		a.schedule.timeline = e.timeline
		a.schedule.choose()
		a.schedule.checkpoint()
	}
	if until := e.timeline.Until(); until-e.forgot >= forgetEvery {
		e.timeline.Forget(until - keepSchedule)
		e.forgot = until
	}
}

// Advance divides the time up to the newest moment that every source has reached, and adds the totals to the history.
func (e *Pressure) Advance(edges []history.Point) (reached int, err error) {
	to, ok := newestCommon(e.history, sources[:])
	if !ok {
		return 0, nil
	}
	if e.timeline != nil && to-e.timeline.Until() < history.Lag {
		to = min(to, e.timeline.Until())
	}
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
	if length := e.cell(); length > maxCell && e.at > 0 {
		to = e.at + (to - e.at).Truncate(length) // the rest waits until it is a cell
	}
	if to <= e.at {
		return reached, err
	}
	_, failed := e.divide(history.Point{At: to})
	return reached, cmp.Or(e.append(), failed, err)
}

// cellPeriods is how many samples of a driver a cell has at least. The readings at its ends are interpolated within a
// sample, so a shorter cell knows too little about the GPU.
const cellPeriods = 3

// cell is the length of cells.
func (e *Pressure) cell() time.Duration {
	length := maxCell
	if e.timeline == nil {
		for _, gpu := range e.gpus {
			length = max(length, cellPeriods*e.history.SamplePeriod(gpu))
		}
	}
	return min(length, time.Second)
}

// append adds the totals to the history, which ignores rows that are not later than its newest one.
func (e *Pressure) append() error {
	if len(e.totals) == 0 {
		return nil
	}
	e.appended = max(e.appended, e.at)
	return e.history.AppendLedgers(e.at, e.totals)
}

// divide closes cells up to p and appends a row for each but the last. There are many at a time where a GPU's driver is
// read once a second. opened reports whether an account began at p.
func (e *Pressure) divide(p history.Point) (opened bool, err error) {
	if first := e.appended + 1; e.appended > 0 && first < p.At && e.hasUnopened() {
		e.close(history.Point{At: first}) // the earliest moment for which a row can be added
		err = e.append()
	}
	next, length := p.At, e.cell()
	for _, a := range e.accounts {
		if a.opened && p.At-a.at < maxBacklog {
			next = min(next, a.at+length)
		}
	}
	for _, a := range e.accounts {
		a.schedule.cells(p)
	}
	for ; next < p.At-length/2; next += length {
		e.close(history.Point{At: next})
		err = cmp.Or(e.append(), err)
	}
	opened = e.hasUnopened()
	e.close(p)
	return opened, err
}

func (e *Pressure) hasUnopened() bool {
	return slices.ContainsFunc(e.accounts, func(a *account) bool { return !a.opened })
}

// close ends a cell of every account at p.
func (e *Pressure) close(p history.Point) {
	e.totals, e.at = e.totals[:0], p.At
	host := readHost(e.history, p)
	for _, a := range e.accounts {
		if !a.opened && p.At <= e.appended {
			continue // a new GPU with readings older than the newest row: none could be added for it
		}
		a.closeCell(e.history, p, &host)
		e.totals = append(e.totals, a.totals)
	}
}

// Estimate adds the present estimate of the totals at an edge to the edge. The accounts stay as they are.
func (e *Pressure) Estimate(edge history.Point) {
	complete, _ := newestCommon(e.history, sources[:len(sources)-1])
	length := e.cell()
	totals := make([]history.LedgerTotals, 0, len(e.accounts))
	for _, a := range e.accounts {
		if a.opened {
			totals = append(totals, a.extrapolate(e.history, edge, length, complete))
		}
	}
	e.history.ObserveLedgers(edge.Edge, totals)
}

// sources has one series of each source that is needed. The GPU is last.
var sources = [...]history.Series{
	history.IOSome, history.HostCPUTime, history.JobCPUTime, history.DisksBytes, history.GPUBusyTime,
}

// maxSilence is how far a source may be behind that is read at every tick. Beyond it, nothing may be left to read: no
// job, for example.
const maxSilence = 2 * time.Second

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
