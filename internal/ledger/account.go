package ledger

import (
	"time"

	"github.com/stallspan/stallspan/internal/history"
)

// account keeps the running totals of one target.
type account struct {
	target Target
	totals history.LedgerTotals
	end    history.Point // of the last cell
	opened bool          // end is set

	schedule schedule // by events
	moments  schedule // where these are missing

	lastIO time.Duration // end of the last cell with I/O of the job itself
}

func newAccount(t Target) *account {
	return &account{target: t, totals: history.LedgerTotals{ID: t.ID(), HasGain: t.Job != ""}}
}

// closeCell ends a cell at p. The first call opens the account there.
func (a *account) closeCell(h *history.History, p history.Point) {
	if !a.opened {
		a.end, a.opened = p, true
		if (a.schedule.timeline != nil || a.moments.timeline != nil) && a.target.Job != "" {
			// The history keeps a column from its first row on, and a window may begin before the first cell ends.
			a.totals.Scheduled = &history.Scheduled{}
		}
		return
	}
	a.addCell(h, p)
}

// extrapolate returns the totals at p and leaves the account as it is. It uses cells up to complete, where every source
// but the GPUs has readings. The rest is one piece, for there are no finer readings.
func (a *account) extrapolate(h *history.History, p history.Point, complete time.Duration) history.LedgerTotals {
	ahead := *a
	ahead.schedule.names, ahead.moments.names = nil, nil
	ahead.schedule.cells(history.Point{})
	ahead.moments.cells(history.Point{})
	for p.At-ahead.end.At > maxCell*3/2 && p.At-ahead.end.At < maxBacklog && ahead.end.At+maxCell <= complete {
		ahead.addCell(h, history.Point{At: ahead.end.At + maxCell})
	}
	ahead.addCell(h, p)
	return ahead.totals
}

// addCell divides the time from the end of the last cell to p, and adds the parts to the totals. What events and
// moments leave dark is estimated.
func (a *account) addCell(h *history.History, p history.Point) {
	if p.At <= a.end.At {
		return
	}
	of, dark := a.scheduled(h, p)
	if dark > 0 {
		c := a.cell(h, p)
		of.add(c.split(), dark/c.dt)
	}
	a.totals.Busy += seconds(of.busy)
	a.totals.Storage += seconds(of.storage)
	a.totals.CPU += seconds(of.cpu)
	a.totals.Gain += seconds(of.gain)
	a.end = p
}

// evidence is what divides the account's time now.
func (a *account) evidence() *schedule {
	if a.moments.begun {
		return &a.moments
	}
	return &a.schedule
}
