package agent

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/stallspan/stallspan/internal/window"
)

// A terminal has 80 columns, whoever else has more. "storage_bound SLOW", the longest verdict, ends in the last one.
const (
	tableWidth = 80
	labelWidth = 15
	diskWidth  = 7
	mostRows   = 40 // a run of a thousand epochs shows its first and last ones
)

// printTable writes a row a window, and below it what was found and what to try. Windows that follow one another with
// the same verdict are explained once; why one is slow is said each time that the verdict alone does not tell.
func printTable(out io.Writer, reports []*window.Report, problems []error) {
	w := &table{out: out}
	w.line("")
	w.gpu = slices.ContainsFunc(reports, func(r *window.Report) bool { return len(r.GPUIDs) > 0 })
	switch {
	case w.gpu:
		w.row("window", "duration", "GPU busy", "storage", "CPU", "other", "disk", "verdict")
	case len(reports) > 0:
		w.row("window", "duration", "on CPU", "storage", "", "other", "disk", "verdict")
	}
	var said *window.Report
	for i, r := range reports {
		if len(reports) > mostRows && i == mostRows/2 {
			w.line(fmt.Sprintf("... %d more, see --report ...", len(reports)-mostRows))
		}
		if len(reports) > mostRows && i >= mostRows/2 && i < len(reports)-mostRows/2 {
			continue
		}
		w.report(r)
		if alike := said != nil && said.Kind == r.Kind && said.Verdict == r.Verdict; !alike {
			w.text("  ", r.Finding)
			w.text("  Try: ", r.Remedy)
		} else if r.LastedTooLong() || r.Slow && said.SlowReason != r.SlowReason {
			w.text("  ", r.Finding)
		}
		w.further(r, said)
		said = r
	}
	if len(reports) == 0 {
		w.line("No window was seen.")
	}
	for _, p := range problems {
		w.text("not seen: ", p.Error())
	}
}

// further says what was found beside the verdict, unless it was of the window before, too.
func (t *table) further(r, said *window.Report) {
	for _, f := range r.Findings {
		if said == nil || said.Found(f.Kind) == nil {
			t.text("  Also: ", f.Text)
			t.text("  Try: ", f.Remedy)
		}
	}
}

type table struct {
	out io.Writer
	gpu bool // its rows are of GPUs; otherwise they are of the program's own time
}

func (t *table) line(s string) {
	_, _ = fmt.Fprintln(t.out, strings.TrimRight(printable(s), " ")) // standard error: if it is gone, there is nobody to tell
}

func (t *table) row(label, duration, busy, storage, cpu, other, disk, verdict string) {
	t.line(fmt.Sprintf("%s %8s %8s %7s %5s %5s %s %s",
		fit(label, labelWidth), duration, busy, storage, cpu, other, fit(disk, diskWidth), verdict))
}

func (t *table) report(r *window.Report) {
	disk := ""
	switch {
	case len(r.Disks) == 1:
		disk = r.Disks[0].Name
	case len(r.Disks) > 1:
		more := fmt.Sprintf("+%d", len(r.Disks)-1)
		disk = strings.TrimRight(fit(r.Disks[0].Name, diskWidth-len(more)), " ") + more
	case len(r.Mounts) > 0:
		disk = r.Mounts[0].Type
	}
	verdict := string(r.Verdict)
	if r.Slow {
		verdict += " SLOW"
	}
	part := func(d time.Duration) string {
		if !r.Split || r.GPUTime() <= 0 {
			return "-"
		}
		return fmt.Sprintf("%.0f %%", 100*d.Seconds()/r.GPUTime().Seconds())
	}
	busy, cpu := part(r.Busy), part(r.CPU)
	switch {
	case !t.gpu && r.Unattributed():
		busy, cpu = "-", ""
	case !t.gpu:
		busy, cpu = cpu, ""
	case len(r.GPUIDs) == 0:
		busy = "-"
	}
	label := r.Label()
	if r.Unfinished {
		label += " (cut)"
	}
	t.row(label, window.Short(r.Duration().Seconds()), busy, part(r.Storage), cpu, part(r.Other), disk, verdict)
}

// text writes a sentence in lines of the table's width, the later ones indented like the first.
func (t *table) text(start, sentence string) {
	line := start
	indent := strings.Repeat(" ", len(start))
	begun := false // the line holds a word
	for _, word := range strings.Fields(sentence) {
		if begun && columns(line)+1+columns(word) > tableWidth {
			t.line(line)
			line, begun = indent, false
		}
		if begun {
			line += " "
		}
		for columns(line)+columns(word) > tableWidth { // a path that fits into no line
			head := prefix(word, tableWidth-columns(line))
			t.line(line + head)
			line, word = indent, word[len(head):]
		}
		line += word
		begun = true
	}
	if begun {
		t.line(line)
	}
}
