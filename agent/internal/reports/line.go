package reports

import (
	"cmp"
	"fmt"
	"time"

	"github.com/stallspan/stallspan/agent/internal/output"
	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/window"
)

// ListHead writes the head of a list of windows.
func ListHead(t *output.Table) {
	listLine(t, "ID", "began", "window", "duration", "storage", "verdict", "")
}

// ListRow writes a window in one line of a list.
func ListRow(t *output.Table, r *explain.Report, state string) {
	storage := "-"
	if total := r.GPUTime(); r.Stall != nil && total > 0 {
		storage = fmt.Sprintf("%.0f %%", 100*r.Stall.Storage/total)
	}
	of := ""
	if r.Source == window.Detected {
		of = "  detected"
	}
	if r.Job != nil {
		of += fmt.Sprintf("  of %s %d", cmp.Or(r.Job.Pod, window.ShownName(r.Job.Name)), r.Job.PID)
	}
	listLine(t, r.ID, r.Start.Local().Format(time.TimeOnly), explain.Indented(explain.Label(r.Label(),
		r.Unfinished), r.Within), explain.Duration(r.Duration), storage, state+explain.Verdict(r.Verdict, r.Slow),
		output.Printable(of))
}

func listLine(t *output.Table, id, began, label, duration, storage, verdict, of string) {
	const idWidth, timeWidth = 16, 8
	t.Cells(output.Cell{Text: fmt.Sprintf("%s %s %s %8s %7s ", output.Fit(id, idWidth), output.Fit(began,
		timeWidth), output.Fit(label, output.LabelWidth),
		duration, storage)}, output.Cell{Text: verdict, Color: verdictColor(verdict)}, output.Cell{Text: of})
}

// EndedLine is a window's report in one line, with its finding.
func EndedLine(r *explain.Report) string {
	line := fmt.Sprintf("%s: %s, %s", explain.Label(r.Label(), r.Unfinished), explain.Duration(r.Duration),
		explain.Verdict(r.Verdict, r.Slow))
	if r.Finding != "" {
		line += ". " + r.Finding
	}
	return output.Printable(line)
}
