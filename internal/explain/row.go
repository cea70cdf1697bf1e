package explain

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/window"
)

// Row is a report as cells of a table.
type Row struct {
	Label, Duration                  string
	Busy, OnCPU, Storage, CPU, Other string // shares of the ledger; "-" if unknown, "" if they do not apply
	Verdict                          string
}

// NewRow returns the cells of a report. OnCPU is set without a GPU, Busy and CPU with one.
func NewRow(r *window.Report) Row {
	part := func(d time.Duration) string {
		if !r.Split || r.GPUTime() <= 0 {
			return "-"
		}
		return fmt.Sprintf("%.0f %%", 100*d.Seconds()/r.GPUTime().Seconds())
	}
	row := Row{
		Label: Indented(Label(r.Label(), r.Unfinished), r.Within), Duration: Duration(r.Duration().Seconds()),
		Busy: part(r.Busy), OnCPU: part(r.CPU),
		Storage: part(r.Storage), CPU: part(r.CPU), Other: part(r.Other), Verdict: Verdict(r.Verdict, r.Slow),
	}
	if len(r.GPUIDs) == 0 {
		row.Busy = "-"
	}
	if !r.StallKnown() {
		row.Storage, row.CPU, row.Other = "-", "-", "-"
	}
	if r.Unattributed() {
		row.OnCPU = "-"
	}
	return row
}

// GPURows returns a row for each of a window's GPUs, if they were used unevenly.
func GPURows(r *window.Report) (rows []Row) {
	if least, _ := r.Uneven(); least == nil || !r.StallKnown() {
		return nil
	}
	part := func(d time.Duration) string { return fmt.Sprintf("%.0f %%", 100*d.Seconds()/r.Duration().Seconds()) }
	for i := range r.Ledgers {
		l := &r.Ledgers[i]
		rows = append(rows, Row{Label: "  " + l.Name(), Busy: part(l.Busy), Storage: part(l.Storage), CPU: part(l.CPU),
			Other: part(l.Other)})
	}
	return rows
}

// NameOf is a window's name for people. epoch is nil if it is unknown.
func NameOf(kind window.Kind, name, model string, epoch *int) string {
	named := window.Window{Kind: kind, Name: name, Model: model, HasEpoch: epoch != nil}
	if epoch != nil {
		named.Epoch = *epoch
	}
	return named.Label()
}

// Label marks the label of a window that did not end by itself.
func Label(label string, unfinished bool) string {
	if unfinished {
		label += " (part)"
	}
	return label
}

// Place is where a window stands in a table.
type Place struct {
	ID, Within    string
	Start, Length time.Duration
}

// InOrder sorts windows by their start, the longer one of two first. What is within an epoch follows it.
func InOrder[W any](all []W, place func(W) Place) {
	epochs := map[string]Place{}
	for _, w := range all {
		p := place(w)
		epochs[p.ID] = p
	}
	outer := func(p Place) (epoch Place, inner int) {
		if of, known := epochs[p.Within]; known && p.Within != "" {
			return of, 1
		}
		return p, 0
	}
	byStart := func(a, b Place) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(b.Length, a.Length)) }
	slices.SortStableFunc(all, func(x, y W) int {
		a, b := place(x), place(y)
		ofA, inA := outer(a)
		ofB, inB := outer(b)
		return cmp.Or(byStart(ofA, ofB), cmp.Compare(ofA.ID, ofB.ID), inA-inB, byStart(a, b))
	})
}

// Indented is a label in a table, where a window that is within another stands below it.
func Indented(label, within string) string {
	if within != "" {
		return "  " + label
	}
	return label
}

// Verdict marks the verdict of a slow window.
func Verdict(v window.Verdict, slow bool) string {
	if slow {
		return string(v) + " SLOW"
	}
	return string(v)
}
