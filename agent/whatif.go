package agent

import (
	"fmt"
	"io"
	"slices"

	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/window"
)

// whatIfUsage is the help of --what-if.
const whatIfUsage = "also print how much faster each window would be with\n" +
	"instant storage, more workers, or a faster GPU"

// printWhatIf writes the predictions for each window, below printTable's rows.
func printWhatIf(out io.Writer, reports []*window.Report) {
	t := newTable(out)
	t.line("")
	reports = slices.DeleteFunc(slices.Clone(reports), func(r *window.Report) bool { return len(explain.Answers(r)) == 0 })
	if len(reports) == 0 {
		t.text("", "What if: not known, because it follows from the scheduler's evidence, which no window has.")
		return
	}
	t.line("What if: how much faster each window would be (2.0x takes half the time)")
	for i, r := range reports {
		if len(reports) > maxRows && i == maxRows {
			t.line(fmt.Sprintf("... %d more, see --report ...", len(reports)-maxRows))
			return
		}
		t.line(explain.Label(r.Label(), r.Unfinished))
		for _, a := range explain.Answers(r) {
			t.line(fmt.Sprintf("  %-23s %s", a.Change, a.Faster))
		}
	}
}
