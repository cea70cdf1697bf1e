package reports

import (
	"fmt"
	"io"
	"slices"

	"github.com/stallspan/stallspan/agent/internal/output"
	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/window"
)

// WhatIfUsage is the help of --what-if.
const WhatIfUsage = "also print how much faster each window would be with\n" +
	"instant storage, more workers, or a faster GPU"

// PrintWhatIf writes the predictions for each window, below printTable's rows.
func PrintWhatIf(out io.Writer, reports []*window.Report) {
	t := output.NewTable(out)
	t.Line("")
	reports = slices.DeleteFunc(slices.Clone(reports), func(r *window.Report) bool { return len(explain.Answers(r)) == 0 })
	if len(reports) == 0 {
		t.Text("", "What if: not known, because it follows from the scheduler's evidence, which no window has.")
		return
	}
	t.Line("What if: how much faster each window would be (2.0x takes half the time)")
	for i, r := range reports {
		if len(reports) > output.MaxRows && i == output.MaxRows {
			t.Line(fmt.Sprintf("... %d more, see --report ...", len(reports)-output.MaxRows))
			return
		}
		t.Line(explain.Label(r.Label(), r.Unfinished))
		for _, a := range explain.Answers(r) {
			t.Line(fmt.Sprintf("  %-23s %s", a.Change, a.Faster))
		}
	}
}
