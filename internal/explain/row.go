package explain

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/window"
)

// Row is a report as cells of a table. The shares of the ledger add up to 100 %; one is "-" if it is unknown.
type Row struct {
	Label, Duration string
	Busy            string // with a GPU
	CPU             string // with a GPU: it waited for the work of a CPU; else the program was on a CPU
	Ready           string // work was ready, and had no core; "" if that is nothing
	Storage, Other  string
	Verdict         string
}

// NewRow returns the cells of a report.
func NewRow(r *window.Report) Row {
	row := Row{
		Label: Indented(Label(r.Label(), r.Unfinished), r.Within), Duration: Duration(r.Duration().Seconds()),
		Busy: "-", Storage: "-", CPU: "-", Other: "-", Verdict: Verdict(r.Verdict, r.Slow),
	}
	if !r.Split || r.GPUTime() <= 0 {
		return row
	}
	cells := row.setShares(r.GPUTime(), r.Busy, r.Storage, r.CPU, r.Ready, r.Other, len(r.GPUIDs) > 0)
	if !r.StallKnown() {
		cells.Storage, cells.Other = "-", "-"
		if len(r.GPUIDs) > 0 {
			cells.CPU = "-"
		}
	}
	if r.Unattributed() {
		cells.CPU = "-"
	}
	return cells
}

// setShares sets the parts of a time. ready is a part of cpu.
func (row Row) setShares(total, busy, storage, cpu, ready, other time.Duration, gpu bool) Row {
	all := wholePercents(total, busy, storage, cpu-ready, ready, other)
	cell := func(i int) string { return fmt.Sprintf("%d %%", all[i]) }
	row.Storage, row.CPU, row.Other = cell(1), cell(2), cell(4)
	if gpu {
		row.Busy = cell(0)
	}
	if all[3] > 0 {
		row.Ready = cell(3)
	}
	return row
}

// wholePercents are the shares of parts in a time. They add up to 100 if the parts add up to it: what rounding leaves
// goes to those with the largest remainders.
func wholePercents(total time.Duration, parts ...time.Duration) []int {
	whole, order, rest := make([]int, len(parts)), make([]int, len(parts)), make([]float64, len(parts))
	sum := 0.5 // rounds
	for i, p := range parts {
		exact := 100 * p.Seconds() / max(total.Seconds(), 1e-9)
		whole[i], order[i] = int(exact), i
		rest[i] = exact - float64(whole[i])
		sum += rest[i]
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rest[b], rest[a]) })
	for _, i := range order[:min(int(max(0, sum)), len(order))] {
		whole[i]++
	}
	return whole
}

// GPURows returns a row for each of a window's GPUs, if they were used unevenly.
func GPURows(r *window.Report) (rows []Row) {
	if least, _ := r.Uneven(); least == nil || !r.StallKnown() {
		return nil
	}
	for i := range r.Ledgers {
		l := &r.Ledgers[i]
		row := Row{Label: "  " + l.Name()}
		rows = append(rows, row.setShares(r.Duration(), l.Busy, l.Storage, l.CPU, l.Ready, l.Other, true))
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
