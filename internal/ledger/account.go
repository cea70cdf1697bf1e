package ledger

import (
	"time"

	"github.com/stallspan/stallspan/internal/history"
)

// sharedIOTime is how long a job's last I/O explains pressure that the job shares with others. A single long read is
// counted only when it returns.
const sharedIOTime = time.Second

// account keeps the running totals of one target.
type account struct {
	target Target
	totals history.LedgerTotals
	at     time.Duration // end of the last cell
	opened bool          // levels and at are set
	levels levels        // at the end of the last cell, or of one before it: see addCell
	since  time.Duration // end of that one

	schedule schedule // by events
	moments  schedule // where these are missing

	lastIO time.Duration // end of the last cell with I/O of the job itself
}

func newAccount(t Target) *account {
	return &account{target: t, totals: history.LedgerTotals{ID: t.ID(), HasGain: t.Job != ""}}
}

// closeCell ends a cell at p, where the machine has these levels. The first call opens the account there. See addCell
// for passes.
func (a *account) closeCell(h *history.History, p history.Point, host *hostLevels, passes bool) {
	if !a.opened {
		a.levels, a.since, a.at, a.opened = a.read(h, p, host), p.At, p.At, true
		if (a.schedule.timeline != nil || a.moments.timeline != nil) && a.target.Job != "" {
			// The history keeps a column from its first row on, and a window may begin before the first cell ends.
			a.totals.Scheduled = &history.Scheduled{}
		}
		return
	}
	if p.At > a.at {
		a.addCell(h, p, host, passes)
	}
}

// extrapolate returns the totals at p and leaves the account as it is. It uses cells up to complete, where every source
// but the GPUs has readings. The rest is one piece, for there are no finer readings.
func (a *account) extrapolate(h *history.History, p history.Point, complete time.Duration) history.LedgerTotals {
	ahead := *a
	ahead.schedule.names, ahead.moments.names = nil, nil
	ahead.schedule.cells(history.Point{})
	ahead.moments.cells(history.Point{})
	for p.At-ahead.at > maxCell*3/2 && p.At-ahead.at < maxBacklog && ahead.at+maxCell <= complete {
		next := history.Point{At: ahead.at + maxCell}
		host := readHost(h, next)
		ahead.addCell(h, next, &host, false)
	}
	if p.At > ahead.at {
		host := readHost(h, p)
		ahead.addCell(h, p, &host, false)
	}
	return ahead.totals
}

// addCell divides the time from the end of the last cell to p, and adds the parts to the totals. A cell that passes, or
// that moments divide, is not estimated if all of it is known.
func (a *account) addCell(h *history.History, p history.Point, host *hostLevels, passes bool) {
	if p.At <= a.at {
		return
	}
	of, dark := a.scheduled(h, p)
	if dark > 0 || !passes && !a.moments.begun {
		a.estimate(h, p, host, &of, dark)
	}
	a.totals.Busy += seconds(of.busy)
	a.totals.Storage += seconds(of.storage)
	a.totals.CPU += seconds(of.cpu)
	a.totals.Gain += seconds(of.gain)
	a.at = p.At
}

// estimate adds dark seconds of the time up to p to its parts: as the counters divide the time since they were last
// looked up.
func (a *account) estimate(h *history.History, p history.Point, host *hostLevels, of *parts, dark float64) {
	now := a.read(h, p, host)
	dt := (p.At - a.since).Seconds()
	c := a.cell(h, now, p, dt)
	if dark > 0 {
		of.add(c.split(), dark/dt)
	}
	a.levels, a.since = now, p.At
}

// evidence is what divides the account's time now.
func (a *account) evidence() *schedule {
	if a.moments.begun {
		return &a.moments
	}
	return &a.schedule
}
