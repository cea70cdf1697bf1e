package reports

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/stallspan/stallspan/agent/internal/output"
	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/window"
)

const (
	diskWidth   = 7
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

	gpu   bool // rows show the GPUs' time; otherwise the program's own
	label int  // columns of the rows' names; 0 for labelWidth
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
// it. Among windows in a row with the same verdict, or in
// an epoch with it, only the first is explained. The reason for a slow one is added where the verdict lacks it.
func PrintTable(out io.Writer, reports []*window.Report, problems []error) {
	w := &windowTable{Table: output.NewTable(out)}
	w.label = w.labelFor(reports)
	w.Line("")
	w.gpu = slices.ContainsFunc(reports, func(r *window.Report) bool { return len(r.GPUIDs) > 0 })
	switch {
	case w.gpu:
		w.row("window", "duration", "GPU busy", "storage", "CPU", "other", "disk", "verdict")
	case len(reports) > 0:
		w.row("window", "duration", "on CPU", "storage", "", "other", "disk", "verdict")
	}
	var outer, part *window.Report // of the rows before: the last one, and the last one within it
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
		if outer != nil && r.Within == outer.ID && r.Within != "" {
			previous, part = cmp.Or(part, outer), r
		} else {
			outer, part = r, nil
		}
		several := r.Verdict == window.Unknown || r.Verdict == window.WaitBound // reasons
		alike := previous != nil && (previous.Kind == r.Kind || previous == outer) && previous.Verdict == r.Verdict &&
			(!several || explain.Advice(previous) == explain.Advice(r))
		if !alike {
			w.Text("  ", explain.Finding(r))
			w.remedy(r, advised)
		} else if r.ExceedsLimit() || r.Slow && previous.SlowReason != r.SlowReason {
			w.Text("  ", explain.Finding(r))
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
	default:
		text += fmt.Sprintf(" The same for %d more windows.", len(same))
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
func (t *windowTable) row(label, duration, busy, storage, cpu, other, disk, verdict string) {
	width, name := t.Screen.Width(), max(t.label, output.LabelWidth)
	disk, other = " "+output.Fit(disk, diskWidth), fmt.Sprintf(" %5s", other)
	if width < output.TableWidth {
		disk = ""
	}
	if width < output.TableWidth-diskWidth-1 {
		other, name = "", output.LabelWidth-6
	}
	text := fmt.Sprintf("%s %8s %8s %7s %5s%s%s ", output.Fit(label, name), duration, busy, storage, cpu, other, disk)
	t.Cells(output.Cell{Text: text}, output.Cell{Text: verdict, Color: verdictColor(verdict)})
}

func (t *windowTable) report(r *window.Report) {
	row := explain.NewRow(r)
	busy, cpu := row.Busy, row.CPU
	if !t.gpu {
		busy, cpu = row.OnCPU, ""
	}
	t.row(row.Label, row.Duration, busy, row.Storage, cpu, row.Other, diskOf(r), row.Verdict)
	for _, one := range explain.GPURows(r) {
		t.row(one.Label, "", one.Busy, one.Storage, one.CPU, one.Other, "", "")
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
