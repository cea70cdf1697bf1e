package ledger

import (
	"time"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/sample"
)

// recallAll divides the past of the targets that are new and have one.
func (e *Estimator) recallAll() (err error) {
	for _, a := range e.accounts {
		if a.opened || a.target.Job == "" || e.appended == 0 {
			continue
		}
		if failed := e.recall(a); failed != nil {
			err = failed
		}
	}
	return err
}

// recall divides the past of a target, up to the newest row. The first cell may be seconds long: it begins where the
// job's counters were 0. The pressure of its cgroup was not read then, so that of the machine is used, as for a job
// that shares its scope.
func (e *Estimator) recall(a *account) error {
	zero, since, ok := e.history.Past(a.target.Job)
	if !ok || since > e.appended {
		return nil
	}
	rows := e.history.LedgerRows(since)
	if len(rows) == 0 || rows[len(rows)-1] != e.appended {
		return nil
	}
	own := a.target
	a.target.Pressure, a.target.Own = sample.HostScope, false
	closeAt := func(at time.Duration) {
		a.closeCell(e.history, history.Point{At: at})
	}
	closeAt(zero)
	var past []history.LedgerRow
	for i, at := range rows {
		if last := i == len(rows)-1; i > 0 && !last && !recalls(e.appended-at, at-a.end.At) {
			continue
		}
		closeAt(at)
		past = append(past, history.LedgerRow{At: at, Totals: a.totals})
	}
	a.target = own
	return e.history.RecallLedger(zero, past)
}

// recalls reports whether a cell of the past ends at a row, which is so long before the newest one, and after the cell
// before.
func recalls(before, after time.Duration) bool { return before <= recallFine || after >= recallCell }
