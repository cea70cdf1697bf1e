package agent

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/stallspan/stallspan/agent/internal/compare"
	"github.com/stallspan/stallspan/internal/window"
)

// changeWidth holds "about the same", the longest change.
const changeWidth = 14

// printComparison writes a row a window, and below those that changed where their time went and why. Windows that follow
// one another with the same change are explained once.
func printComparison(out io.Writer, nameA, nameB string, c *compare.Comparison) {
	t := &comparisonTable{table{out: out}}
	t.line("")
	t.text("A: ", nameA)
	t.text("B: ", nameB)
	t.line("")
	if len(c.Windows) > 0 {
		t.row("window", "A", "B", "change", "verdict")
	}
	var said *compare.Pair
	for _, p := range foremost(c.Windows) {
		t.pair(p, said == nil || !alike(said, p))
		said = p
	}
	if left := len(c.Windows) - mostRows; left > 0 {
		t.line(fmt.Sprintf("... %d more, which changed less: see --json ...", left))
	}
	t.alone("A", c.OnlyA)
	t.alone("B", c.OnlyB)
	t.line("")
	t.text("", c.Finding)
	if c.Whole != nil && len(c.Windows) > 1 {
		for _, note := range c.Whole.Notes {
			t.text("", note)
		}
	}
}

// foremost are the windows that there is room for: those that changed most, in their order.
func foremost(windows []*compare.Pair) []*compare.Pair {
	if len(windows) <= mostRows {
		return windows
	}
	rank := make([]int, len(windows))
	for i := range rank {
		rank[i] = i
	}
	slices.SortStableFunc(rank, func(i, j int) int {
		return cmp.Compare(weight(windows[j]), weight(windows[i]))
	})
	rank = rank[:mostRows]
	slices.Sort(rank)
	var most []*compare.Pair
	for _, i := range rank {
		most = append(most, windows[i])
	}
	return most
}

// weight is by how much a window changed, in seconds; one that is about the same has none.
func weight(p *compare.Pair) float64 {
	if p.Change == compare.Same {
		return 0
	}
	return math.Abs(p.Difference)
}

// alike says whether two windows changed in the same way, for the same reason.
func alike(p, q *compare.Pair) bool {
	return p.Kind == q.Kind && p.Change == q.Change && p.ExplainedBy == q.ExplainedBy && p.Ledger == q.Ledger &&
		p.A.Verdict == q.A.Verdict && p.B.Verdict == q.B.Verdict && len(p.Notes) == len(q.Notes)
}

type comparisonTable struct{ table }

func (t *comparisonTable) row(label, a, b, change, verdict string) {
	t.line(fmt.Sprintf("%s %8s %8s  %s %s", fit(label, labelWidth), a, b, fit(change, changeWidth), verdict))
}

func (t *comparisonTable) pair(p *compare.Pair, explain bool) {
	verdict := string(p.A.Verdict)
	if p.A.Verdict != p.B.Verdict {
		verdict += " -> " + string(p.B.Verdict)
	}
	t.row(p.Label, window.Short(p.A.Duration), window.Short(p.B.Duration), p.Verdict(), verdict)
	if !explain || p.Why == "" && len(p.Notes) == 0 {
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

// parts leaves out those that are nothing in both.
func (t *comparisonTable) parts(parts []compare.Part) {
	const nothing = 0.5e-6 // seconds
	for _, p := range parts {
		if p.A >= nothing || p.B >= nothing {
			t.row("  "+compare.PartName(p.Part), window.Short(p.A), window.Short(p.B), compare.More(p.Difference), "")
		}
	}
}

// alone names windows that only one report has.
func (t *comparisonTable) alone(report string, list []compare.Name) {
	if len(list) == 0 {
		return
	}
	const most = 8
	var names []string
	for _, n := range list[:min(most, len(list))] {
		names = append(names, n.Label)
	}
	more := ""
	if n := len(list) - most; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	t.text("only in "+report+": ", strings.Join(names, ", ")+more)
}
