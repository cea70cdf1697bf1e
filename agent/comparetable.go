package agent

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/stallspan/stallspan/agent/internal/compare"
	"github.com/stallspan/stallspan/internal/explain"
)

// changeWidth holds "about the same", the longest change.
const changeWidth = 14

// printComparison writes one row for each window, and below a changed one its parts and the reason. Among windows in a
// row with the same change only the first is explained.
func printComparison(out io.Writer, nameA, nameB string, c *compare.Comparison, runs *compare.Runs) error {
	return writeTable(out, func(t *table) { (&comparisonTable{*t}).all(nameA, nameB, c, runs) })
}

func (t *comparisonTable) all(nameA, nameB string, c *compare.Comparison, runs *compare.Runs) {
	t.line("")
	t.text("A: ", nameA)
	t.text("B: ", nameB)
	t.line("")
	if runs != nil {
		t.runs(runs)
	}
	if len(c.Windows) > 0 {
		t.row("window", "A", "B", "change", "verdict")
	}
	var previous *compare.Pair
	for _, p := range topChanges(c.Windows) {
		t.pair(p, previous == nil || !alike(previous, p))
		previous = p
	}
	if left := len(c.Windows) - maxRows; left > 0 {
		t.line(fmt.Sprintf("... %d more, which changed less: see --json ...", left))
	}
	t.alone("A", c.OnlyA)
	t.alone("B", c.OnlyB)
	t.line("")
	t.text("", c.Finding)
	if chance := byChance(c, runs); chance != "" {
		t.text("", chance)
	}
	if c.Whole != nil && len(c.Windows) > 1 {
		for _, note := range c.Whole.Notes {
			t.text("", note)
		}
	}
}

// runs are all runs of both sides, and what they say together.
func (t *comparisonTable) runs(r *compare.Runs) {
	t.line(fmt.Sprintf("%s %8s %8s %8s", fit("", labelWidth), "median", "least", "most"))
	for _, side := range []struct {
		name string
		compare.Spread
	}{{"A", r.A}, {"B", r.B}} {
		t.line(fmt.Sprintf("%s %8s %8s %8s", fit(fmt.Sprintf("%s, %d runs", side.name, len(side.Durations)), labelWidth),
			explain.Duration(side.Median), explain.Duration(side.Least), explain.Duration(side.Most)))
	}
	t.line("")
	t.text("", r.Finding)
	t.line("")
	t.text("", "The median runs, window by window:")
	t.line("")
}

// topChanges selects the windows to show: those with the largest changes, in their order.
func topChanges(windows []*compare.Pair) []*compare.Pair {
	if len(windows) <= maxRows {
		return windows
	}
	rank := make([]int, len(windows))
	for i := range rank {
		rank[i] = i
	}
	slices.SortStableFunc(rank, func(i, j int) int {
		return cmp.Compare(weight(windows[j]), weight(windows[i]))
	})
	rank = rank[:maxRows]
	slices.Sort(rank)
	var selected []*compare.Pair
	for _, i := range rank {
		selected = append(selected, windows[i])
	}
	return selected
}

// weight is by how much a window changed, in seconds.
func weight(p *compare.Pair) float64 {
	if p.Change == compare.Same {
		return 0
	}
	return math.Abs(p.Difference)
}

// alike reports whether two windows changed in the same way, for the same reason.
func alike(p, q *compare.Pair) bool {
	return p.Kind == q.Kind && p.Change == q.Change && p.ExplainedBy == q.ExplainedBy && p.Ledger == q.Ledger &&
		p.A.Verdict == q.A.Verdict && p.B.Verdict == q.B.Verdict && len(p.Notes) == len(q.Notes)
}

type comparisonTable struct{ table }

func (t *comparisonTable) row(label, a, b, change, verdict string) {
	t.line(fmt.Sprintf("%s %8s %8s  %s %s", fit(label, labelWidth), a, b, fit(change, changeWidth), verdict))
}

func (t *comparisonTable) pair(p *compare.Pair, reasons bool) {
	verdict := string(p.A.Verdict)
	if p.A.Verdict != p.B.Verdict {
		verdict += " -> " + string(p.B.Verdict)
	}
	t.row(p.Label, explain.Duration(p.A.Duration), explain.Duration(p.B.Duration), p.Verdict(), verdict)
	if !reasons || p.Why == "" && len(p.Notes) == 0 {
		return
	}
	if p.Why != "" {
		t.parts(p.Parts)
		t.text("  Why: ", p.Why+".")
	}
	for _, note := range p.Notes {
		t.text("  ", note)
	}
}

// parts leaves out those that are zero in both.
func (t *comparisonTable) parts(parts []compare.Part) {
	const zero = 0.5e-6 // seconds: rounds to 0
	for _, p := range parts {
		if p.A >= zero || p.B >= zero {
			t.row("  "+compare.PartName(p.Part), explain.Duration(p.A), explain.Duration(p.B), compare.More(p.Difference), "")
		}
	}
}

// alone names the windows that only one report has.
func (t *comparisonTable) alone(report string, list []compare.Name) {
	if len(list) == 0 {
		return
	}
	var names []string
	for _, n := range list {
		names = append(names, n.Label)
	}
	t.text("only in "+report+": ", firstOf(names, 8))
}
