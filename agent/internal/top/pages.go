package top

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gdamore/tcell/v3"

	"github.com/stallspan/stallspan/agent/internal/output"
	"github.com/stallspan/stallspan/internal/window"
)

// line is a line of a page.
type line struct {
	text  string
	style tcell.Style
	parts *[4]float64 // a ledger behind the text
}

// pageLines are the lines of a page.
type pageLines []line

func (p *pageLines) add(style tcell.Style, all ...string) {
	for _, text := range all {
		*p = append(*p, line{text: text, style: style})
	}
}

// drawPage writes lines between header and footer, from the scroll position on.
func (v *View) drawPage(c *canvas, lines pageLines) {
	room := c.height - 2
	v.scroll = max(0, min(v.scroll, len(lines)-room))
	for i, l := range lines[v.scroll:min(len(lines), v.scroll+room)] {
		y := 1 + i
		if l.style == heading {
			c.fill(y, heading)
		}
		x := c.put(0, y, c.width, l.text, l.style)
		if l.parts != nil {
			c.stack(x+1, y, max(0, c.width-x-1), *l.parts)
		}
	}
}

// helpText are the keys, and what they do.
var helpText = [...][2]string{
	{"q, ^C", "quit"},
	{"h, ?", "this page"},
	{"p, space", "pause; the display stops, the measurement goes on"},
	{"up, down, k, j", "select a job"},
	{"enter", "its ledger, the reasons of other, and what to try; esc goes back"},
	{"t, F5", "its processes as a tree: each below the one that started it"},
	{"s, <, >", "sort the jobs by the next column; I reverses the order"},
	{"/", "show only jobs with this text in their name"},
	{"+, -", "a longer or a shorter interval"},
	{"left, right", "one step back or on; pgup and pgdn 30 steps, home and end"},
	{"^L, ^Z", "draw again; stop (fg continues)"},
}

var partNames = [4]string{"busy: the GPU worked", "storage: the GPU idled, the job waited for storage",
	"CPU: the GPU idled, the input pipeline used or waited for a CPU", "other: idle for neither of the two"}

func (v *View) drawHelp(c *canvas) {
	p := pageLines{{text: "KEYS", style: heading}}
	for _, key := range helpText {
		p.add(normal, indented(fmt.Sprintf("%-16s", key[0]), key[1], c.width)...)
	}
	p.add(normal, "", "Parts of a job's time, in this order and with these signs:")
	for i, name := range partNames {
		p.add(partStyles[i], fmt.Sprintf("  %s %s", strings.Repeat(string(c.bar(i)), 3), name))
	}
	for _, text := range []string{
		"Without a GPU, a job's own time is divided. Busy is then its time on a CPU, marked c, and CPU its time without " +
			"a core.",
		"of ceiling: throughput as a share of the highest that the disk has reached; unknown below a queue of 1.",
		"await: mean time of an operation in ms. queue: mean number of operations in flight.",
		"What cannot be seen here, and how to get it: stallspan check.",
	} {
		p.add(normal, output.WrapText(text, c.width)...)
	}
	v.drawPage(c, p)
}

// selectedJob is the job that a page shows; nil without jobs, which the page says.
func (v *View) selectedJob(c *canvas, f *Frame) *Job {
	jobs := v.jobs(f)
	if len(jobs) == 0 {
		v.drawPage(c, pageLines{{text: f.NoJobs, style: faint}})
		return nil
	}
	return &jobs[v.chosen(jobs)]
}

// drawDetails shows all that is known of the selected job.
func (v *View) drawDetails(c *canvas, f *Frame) {
	j := v.selectedJob(c, f)
	if j == nil {
		return
	}
	title := "JOB " + j.label()
	if j.Ended {
		title += " (ended)"
	}
	lines := pageLines{{text: title, style: heading}}
	add := lines.add
	state := fmt.Sprintf("watched for %s, %s", duration(j.Watched), output.Count(j.Processes, "process"))
	if j.CPU >= 0 {
		state += fmt.Sprintf(", %s cores in use", decimal(j.CPU))
	}
	switch {
	case j.HasIO:
		state += fmt.Sprintf(", reads %s MiB/s and writes %s MiB/s of storage", decimal(j.Read/mib), decimal(j.Write/mib))
	case !j.Ended:
		state += ", bytes unknown: see stallspan check"
	}
	add(normal, output.WrapText(state, c.width)...)
	add(normal, "")
	lines = append(lines, ledgerLine(j.Recent.over(), &j.Recent),
		ledgerLine("since watched", &j.Whole))
	add(normal, "")
	add(normal, indented("", finding(&j.Recent), c.width)...)
	add(strong, indented("Try: ", j.Recent.Remedy, c.width)...)
	for _, also := range j.Recent.Also {
		add(normal, indented("Also: ", also.Text, c.width)...)
		add(strong, indented("Try: ", also.Remedy, c.width)...)
	}
	add(normal, indented("Other: ", strings.Join(j.Recent.Reasons, ", "), c.width)...)
	if j.Whole.Length > j.Recent.Length && j.Whole.Finding != "" {
		add(normal, "")
		add(normal, indented("Since "+f.At.Add(-j.Watched).Local().Format(time.TimeOnly)+": ", j.Whole.Finding, c.width)...)
		add(normal, indented("Other: ", strings.Join(j.Whole.Reasons, ", "), c.width)...)
	}
	add(faint, indented("", j.Recent.Evidence, c.width)...)
	if len(j.Recent.Disks) > 0 {
		add(normal, "")
		add(heading, fmt.Sprintf("%-20s %10s %10s %9s %7s", "DISK, any process", "read MiB/s", "write", "await ms", "queue"))
		for _, d := range j.Recent.Disks {
			await := "-"
			if d.Await > 0 {
				await = decimal(float64(d.Await) / float64(time.Millisecond))
			}
			add(normal, fmt.Sprintf("%s %10s %10s %9s %7s", output.Fit(d.Name, 20), decimal(d.Read/mib),
				decimal(d.Write/mib), await, decimalOf(d.Queue)))
		}
	}
	if len(j.Members) > 0 {
		add(normal, "")
		add(heading, fmt.Sprintf("%8s %7s %10s  %s", "PID", "cores", "read MiB/s", "process"))
		for _, m := range j.Members {
			add(normal, fmt.Sprintf("%8d %7s %10s  %s", m.PID, decimal(m.CPU), decimal(m.Read/mib), window.ShownName(m.Name)))
		}
	}
	v.drawPage(c, lines)
}

// over names the time that a ledger divides.
func (l *Ledger) over() string {
	if l.Length < time.Second {
		return "just found"
	}
	return "last " + duration(l.Length)
}

// finding is the sentence of a ledger, or why it is missing.
func finding(l *Ledger) string {
	if l.Finding == "" {
		return "Its time is not divided yet: readings of a GPU are a second or two late."
	}
	return l.Finding
}

// ledgerLine is a ledger as numbers and as a bar.
func ledgerLine(name string, l *Ledger) line {
	if !l.Split {
		return line{text: fmt.Sprintf("%-14s not known yet", name), style: faint}
	}
	parts := l.parts()
	busy := "busy"
	if l.GPUs == 0 {
		busy = "on CPU"
	}
	text := fmt.Sprintf("%-14s %s %.0f %%, storage %.0f %%", name, busy, 100*parts[0], 100*parts[1])
	switch {
	case l.GPUs > 0:
		text += fmt.Sprintf(", CPU %.0f %%", 100*parts[2])
	case l.Ready > 0:
		text += fmt.Sprintf(", no core %.0f %%", 100*l.Ready)
	}
	return line{text: text + fmt.Sprintf(", other %.0f %%", 100*parts[3]), parts: &parts}
}

// branch is a process of a tree.
type branch struct {
	Member
	before string // what is drawn in front of its name
}

// tree returns processes with each one below the one that started it, by their IDs: rows do not swap. One whose parent
// is not in the list is a root.
func tree(list []Member, ascii bool) []branch {
	fork, last, pass, blank := "├─ ", "└─ ", "│  ", "   "
	if ascii {
		fork, last, pass = "|- ", "`- ", "|  "
	}
	list = slices.SortedFunc(slices.Values(list), func(a, b Member) int { return cmp.Compare(a.PID, b.PID) })
	children := map[int][]Member{}
	for _, m := range list {
		parent := m.Parent
		if parent == m.PID || !slices.ContainsFunc(list, func(o Member) bool { return o.PID == parent }) {
			parent = 0
		}
		children[parent] = append(children[parent], m)
	}
	var all []branch
	var add func(pid int, before string, root bool)
	add = func(pid int, before string, root bool) {
		below := children[pid]
		delete(children, pid) // parents are read at different times: in a circle, this ends
		for i, m := range below {
			here, under := fork, pass
			switch {
			case root:
				here, under = "", ""
			case i == len(below)-1:
				here, under = last, blank
			}
			all = append(all, branch{m, before + here})
			add(m.PID, before+under, false)
		}
	}
	add(0, "", true)
	for _, m := range list { // what is left are circles
		if len(children[m.Parent]) > 0 {
			add(m.Parent, "", true)
		}
	}
	return all
}

// drawProcesses shows the processes of the selected job as a tree.
func (v *View) drawProcesses(c *canvas, f *Frame) {
	j := v.selectedJob(c, f)
	if j == nil {
		return
	}
	lines := pageLines{{text: "PROCESSES of " + j.label(), style: heading}}
	all := tree(j.Members, c.ascii)
	switch {
	case j.Ended:
		lines.add(faint, "The job has ended.")
	case len(all) == 0:
		lines.add(faint, "Not read yet.")
	default:
		lines.add(strong, fmt.Sprintf("%8s %7s %10s %8s  %s", "PID", "cores", "read MiB/s", "GPU MiB", "process"))
	}
	for _, b := range all {
		read := "-"
		if j.HasIO {
			read = decimal(b.Read / mib)
		}
		lines.add(normal, fmt.Sprintf("%8d %7s %10s %8s  %s%s", b.PID, decimal(b.CPU), read, f.memoryOf(b.PID), b.before,
			window.ShownName(b.Name)))
	}
	if more := j.Processes - len(all); more > 0 && len(all) > 0 {
		lines.add(faint, plural(more, "that do less"))
	}
	v.drawPage(c, lines)
}

// memoryOf is the memory of GPUs that a process holds, in MiB; "-" for none.
func (f *Frame) memoryOf(pid int) string {
	sum, holds := uint64(0), false
	for i := range f.GPUs {
		for _, h := range f.GPUs[i].Processes {
			if h.PID == pid && h.Has {
				sum, holds = sum+h.Memory, true
			}
		}
	}
	if !holds {
		return "-"
	}
	return fmt.Sprintf("%.0f", float64(sum)/mib)
}
