package reports

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/stallspan/stallspan/agent/internal/output"
	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/window"
)

const (
	diskWidth   = 7
	readyWidth  = 7
	minWidth    = 60 // of a table
	maxSlowRows = 1000
)

// verdictColor is the colour of a verdict, as explain.Verdict words it.
func verdictColor(text string) output.Color {
	switch {
	case strings.HasSuffix(text, "SLOW"):
		return output.Bad
	case strings.HasSuffix(text, string(window.GPUBound)):
		return output.Good
	case strings.HasSuffix(text, string(window.StorageBound)), strings.HasSuffix(text, string(window.CPUBound)),
		strings.HasSuffix(text, string(window.Mixed)):
		return output.Stall
	}
	return output.Plain
}

// windowTable has a row for each window.
type windowTable struct {
	*output.Table

	gpu   bool            // rows show the GPUs' time; otherwise the program's own
	ready bool            // some window had work without a core
	named map[string]bool // labels of windows for which a remedy was said to be the same
	label int             // columns of the rows' names; 0 for labelWidth
}

// labelFor is the width of the names, where the terminal has room for them.
func (t *windowTable) labelFor(reports []*window.Report) int {
	longest := output.LabelWidth
	for _, r := range reports {
		longest = max(longest, output.Columns(explain.NewRow(r).Label))
	}
	return min(longest, max(output.LabelWidth, output.LabelWidth+t.Screen.Width()-output.TableWidth))
}

// PrintTable writes one row for each window, and below it the finding and the remedy. What is within an epoch follows
// it. Among windows in a row with the same verdict, or in an epoch with it, only the first is explained, and slow ones
// name it. The reason for a slow one is added where the verdict lacks it.
func PrintTable(out io.Writer, reports []*window.Report, problems []error) {
	w := &windowTable{Table: output.NewTable(out), named: map[string]bool{}}
	w.label = w.labelFor(reports)
	w.Line("")
	w.gpu = slices.ContainsFunc(reports, func(r *window.Report) bool { return len(r.GPUIDs) > 0 })
	w.ready = slices.ContainsFunc(reports, func(r *window.Report) bool { return explain.NewRow(r).Ready != "" })
	head := explain.Row{Label: "window", Duration: "duration", Busy: "GPU busy", Storage: "storage", CPU: "CPU",
		Ready: "no core", Other: "other", Verdict: "verdict"}
	if !w.gpu {
		head.CPU = "on CPU"
	}
	if len(reports) > 0 {
		w.row(head, "disk")
	}
	var outer, part *window.Report // of the rows before: the last one, and the last one within it
	explainedBy := map[*window.Report]string{}
	advised := advisedFor(reports)
	slow, hidden := 0, 0
	for i, r := range reports {
		if i >= output.MaxRows/2 && i < len(reports)-output.MaxRows/2 && (!r.Slow || slow == maxSlowRows) {
			hidden++
			continue
		}
		if hidden > 0 {
			w.Line(fmt.Sprintf("... %d more, see --report ...", hidden))
			hidden = 0
		}
		if r.Slow {
			slow++
		}
		w.report(r)
		previous := outer
		within := outer != nil && r.Within == outer.ID && r.Within != ""
		if within {
			previous, part = cmp.Or(part, outer), r
		} else {
			outer, part = r, nil
		}
		several := r.Verdict == window.Unknown || r.Verdict == window.WaitBound // reasons
		alike := previous != nil && (previous.Kind == r.Kind || previous == outer) && previous.Verdict == r.Verdict &&
			(!several || explain.Advice(previous) == explain.Advice(r))
		label := explain.Label(r.Label(), r.Unfinished)
		switch {
		case !alike:
			w.Text("  ", explain.Finding(r))
			w.remedy(r, advised)
			explainedBy[r] = label
		case r.ExceedsLimit() || r.Slow && previous.SlowReason != r.SlowReason && (!within || !previous.Slow):
			w.Text("  ", explain.Finding(r))
			explainedBy[r] = label
		default:
			explainedBy[r] = explainedBy[previous]
			if r.Slow && !w.named[label] {
				w.Text("  ", "As "+explainedBy[r]+".")
			}
		}
		w.further(r, previous)
		if !alike || !sameSteps(r, previous) {
			w.Text("  ", explain.Steps(r))
		}
	}
	if len(reports) == 0 {
		w.Line("No windows.")
	}
	w.Text("", explain.EvidenceOf(reports)) // what the ledgers were made from, and what would give more
	for _, p := range problems {
		w.Text("Warning: ", p.Error())
	}
}

// sameSteps reports whether the steps of two windows take the same time within a tenth.
func sameSteps(a, b *window.Report) bool {
	if a.Steps == nil || b.Steps == nil {
		return a.Steps == nil
	}
	return (a.Steps.Period - b.Steps.Period).Abs() <= b.Steps.Period/10
}

// advisedFor lists the labels of windows by their advice. What is within an epoch with the same one has no label.
func advisedFor(reports []*window.Report) map[string][]string {
	advised, epochs := map[string][]string{}, map[string]string{}
	for _, r := range reports {
		advice := explain.Advice(r)
		if of, known := epochs[r.Within]; known && r.Within != "" && of == advice {
			continue
		}
		if r.Kind == window.Epoch {
			epochs[r.ID] = advice
		}
		advised[advice] = append(advised[advice], explain.Label(r.Label(), r.Unfinished))
	}
	return advised
}

// maxSame is how many windows with the same advice have their names in its line.
const maxSame = 3

// remedy writes what to try, once for all windows with that advice.
func (t *windowTable) remedy(r *window.Report, advised map[string][]string) {
	advice := explain.Advice(r)
	labels := advised[advice]
	delete(advised, advice)
	if advice == "" || len(labels) == 0 {
		return
	}
	text := explain.Remedy(r)
	switch same := labels[1:]; {
	case len(same) == 0:
	case len(same) <= maxSame:
		text += " The same for " + strings.Join(same, ", ") + "."
		for _, label := range same {
			t.named[label] = true
		}
	default:
		text += fmt.Sprintf(" The same for %d more.", len(same))
	}
	t.Text("  Try: ", text)
}

// further writes the findings beyond the verdict that the previous window did not have.
func (t *windowTable) further(r, previous *window.Report) {
	var before []explain.FurtherFinding
	if previous != nil {
		before = explain.FurtherFindings(previous)
	}
	for _, f := range explain.FurtherFindings(r) {
		same := func(old explain.FurtherFinding) bool { return old.Kind == f.Kind && old.Remedy == f.Remedy }
		if !slices.ContainsFunc(before, same) {
			t.Text("  Also: ", f.Text)
			t.Text("  Try: ", f.Remedy)
		}
	}
}

// row writes one row. A terminal of less than 80 columns shows fewer of them, down to 60.
func (t *windowTable) row(r explain.Row, disk string) {
	width, name := t.Screen.Width(), max(t.label, output.LabelWidth)
	if t.gpu && t.ready {
		width -= readyWidth + 1 // one column more
	}
	disk, other, noCore := " "+output.Fit(disk, diskWidth), fmt.Sprintf(" %5s", r.Other), ""
	if width < output.TableWidth {
		disk = ""
	}
	if width < output.TableWidth-diskWidth-1 {
		other, name = "", output.LabelWidth-6
	}
	if t.ready && width >= minWidth {
		noCore = fmt.Sprintf(" %*s", readyWidth, r.Ready)
	}
	cells := fmt.Sprintf("%8s %7s %5s%s", r.Busy, r.Storage, r.CPU, noCore)
	switch {
	case !t.gpu && t.ready: // of the program's own time it stands in the place of the CPU stall
		cells = fmt.Sprintf("%6s %7s%s", r.CPU, r.Storage, noCore)
	case !t.gpu:
		cells = fmt.Sprintf("%8s %7s %5s", r.CPU, r.Storage, "")
	}
	text := fmt.Sprintf("%s %8s %s%s%s ", output.Fit(r.Label, name), r.Duration, cells, other, disk)
	t.Cells(output.Cell{Text: text}, output.Cell{Text: r.Verdict, Color: verdictColor(r.Verdict)})
}

func (t *windowTable) report(r *window.Report) {
	t.row(explain.NewRow(r), diskOf(r))
	for _, one := range explain.GPURows(r) {
		t.row(one, "")
	}
}

// smallStorage is the share of storage stall that a row shows as 0 %.
const smallStorage = 0.005

// diskOf names the storage that a window waited for: a slow device above its disks, its disk, the first of several with
// the number of others, or the type of its network mount.
func diskOf(r *window.Report) string {
	switch {
	case r.Split && r.GPUTime() > 0 && r.Storage.Seconds() < smallStorage*r.GPUTime().Seconds():
		return ""
	case r.SlowDevice != nil && (r.SlowDevice.Layer || r.SlowDevice.Limit != nil):
		return r.SlowDevice.Name
	case len(r.Disks) == 1:
		return r.Disks[0].Name
	case len(r.Disks) > 1:
		more := fmt.Sprintf("+%d", len(r.Disks)-1)
		return strings.TrimRight(output.Fit(r.Disks[0].Name, diskWidth-len(more)), " ") + more
	case len(r.Mounts) > 0:
		return r.Mounts[0].Type
	}
	return ""
}

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
