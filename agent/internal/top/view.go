package top

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stallspan/stallspan/agent/internal/output"
)

// Smallest terminal, in columns and lines.
const (
	MinWidth  = 60
	MinHeight = 16
)

// order is what the jobs are sorted by.
type order int

const (
	sortLost order = iota // the share of the time in which a job did not get on
	sortName
	sortBusy
	sortStorage
	sortCPU
	sortRead
	orders
)

var orderNames = [orders]string{"time lost", "name", "busy", "storage", "cores", "read"}

// mode is what the screen shows.
type mode int

const (
	overview mode = iota
	details
	processes
	help
)

// keptFrames bounds the history, and so the memory: 30 minutes at one frame a second.
const keptFrames = 1800

// View is what is shown, and how. It is changed by keys and by new frames, and draws itself on a canvas.
type View struct {
	ASCII    bool
	Interval time.Duration // between two frames

	frames []*Frame // the oldest first
	at     int      // the frame that is shown
	paused bool

	mode     mode
	order    order
	reverse  bool
	selected string // ID of a job
	filter   string
	typing   bool // the filter
	scroll   int  // of the details
}

// NewView returns a view without frames.
func NewView(interval time.Duration, ascii bool) *View {
	return &View{Interval: interval, ASCII: ascii}
}

// Add appends a frame, and shows it unless the view is paused or stands at an earlier one.
func (v *View) Add(f *Frame) {
	newest := v.at >= len(v.frames)-1
	v.frames = append(v.frames, f)
	if over := len(v.frames) - keptFrames; over > 0 {
		v.frames = slices.Delete(v.frames, 0, over)
		v.at = max(0, v.at-over)
	}
	if newest && !v.paused {
		v.at = len(v.frames) - 1
	}
}

// frame is the one that is shown; nil before the first.
func (v *View) frame() *Frame {
	if len(v.frames) == 0 {
		return nil
	}
	return v.frames[v.at]
}

// history returns a value of the last n frames up to the one that is shown.
func (v *View) history(n int, value func(*Frame) float64) []float64 {
	from := max(0, v.at+1-n)
	list := make([]float64, 0, n)
	for _, f := range v.frames[from : v.at+1] {
		list = append(list, value(f))
	}
	return list
}

// longestHistory is the widest history that is drawn.
const longestHistory = 60

// highest is the highest throughput of each disk in the history that may be drawn, or its ceiling.
func (v *View) highest(f *Frame) map[string]float64 {
	most := map[string]float64{}
	for i := range f.Disks {
		most[f.Disks[i].Name] = max(f.Disks[i].ReadCeiling, mib)
	}
	for _, f := range v.frames[max(0, v.at+1-longestHistory) : v.at+1] {
		for i := range f.Disks {
			most[f.Disks[i].Name] = max(most[f.Disks[i].Name], f.Disks[i].bytes())
		}
	}
	return most
}

// jobs returns the jobs that pass the filter, in their order.
func (v *View) jobs(f *Frame) []Job {
	wanted := strings.ToLower(v.filter)
	list := slices.DeleteFunc(slices.Clone(f.Jobs), func(j Job) bool {
		return !strings.Contains(strings.ToLower(j.label()), wanted)
	})
	slices.SortStableFunc(list, func(a, b Job) int {
		var by int
		switch v.order {
		case sortName:
			by = cmp.Compare(a.Name, b.Name)
		case sortBusy:
			by = cmp.Compare(b.Recent.parts()[0], a.Recent.parts()[0])
		case sortStorage:
			by = cmp.Compare(b.Recent.Storage, a.Recent.Storage)
		case sortCPU:
			by = cmp.Compare(b.CPU, a.CPU)
		case sortRead:
			by = cmp.Compare(b.Read, a.Read)
		default:
			by = cmp.Or(cmp.Compare(min(1, b.Holds), min(1, a.Holds)),
				cmp.Compare(int(10*b.Recent.lost()), int(10*a.Recent.lost()))) // so that rows do not swap all the time
		}
		if v.reverse {
			by = -by
		}
		if a.Ended != b.Ended { // always last
			by = map[bool]int{true: 1, false: -1}[a.Ended]
		}
		return cmp.Or(by, cmp.Compare(a.ID, b.ID))
	})
	return list
}

// chosen is the place of the selected job, or of the first one.
func (v *View) chosen(list []Job) int {
	return max(0, slices.IndexFunc(list, func(j Job) bool { return j.ID == v.selected }))
}

// draw returns the screen.
func (v *View) draw(width, height int) *canvas {
	c := newCanvas(width, height, v.ASCII)
	f := v.frame()
	switch {
	case width < MinWidth || height < MinHeight:
		c.put(0, 0, width, fmt.Sprintf("%dx%d is too small", width, height), normal)
		c.put(0, 1, width, fmt.Sprintf("need %dx%d; q quits", MinWidth, MinHeight), normal)
		return c
	case f == nil:
		c.put(0, 0, width, "reading the first interval ...", faint)
		return c
	}
	v.header(c, f)
	switch v.mode {
	case help:
		v.drawHelp(c)
	case details:
		v.drawDetails(c, f)
	case processes:
		v.drawProcesses(c, f)
	default:
		v.drawOverview(c, f)
	}
	v.footer(c)
	return c
}

// header says which machine and moment is shown, and how busy the machine is.
func (v *View) header(c *canvas, f *Frame) {
	x := c.put(0, 0, c.width, cmp.Or(f.Host, "this machine"), strong) + 2
	x += c.put(x, 0, c.width-x, f.At.Local().Format(time.TimeOnly), normal) + 2
	if state := v.state(); state != "" {
		x += c.put(x, 0, c.width-x, state, yellow.Bold(true)) + 2
	}
	var right []string
	if f.CPU >= 0 {
		right = append(right, fmt.Sprintf("%d cores %.0f %%", f.Cores, 100*f.CPU))
	}
	if b := f.BusiestCore; b != nil {
		right = append(right, fmt.Sprintf("%s %.0f %%", b.Name, 100*b.Utilization))
	}
	if p := f.Pressure; p != nil {
		right = append(right, fmt.Sprintf("I/O pressure %.0f %%", 100*p.Some))
	}
	for ; len(right) > 0; right = right[:len(right)-1] {
		line := strings.Join(right, "  ")
		if w := output.Columns(line); x+w <= c.width {
			c.put(c.width-w, 0, w, line, normal)
			return
		}
	}
}

// state is how the frames go on.
func (v *View) state() string {
	var parts []string
	if back := len(v.frames) - 1 - v.at; back > 0 {
		parts = append(parts, duration(v.frames[len(v.frames)-1].At.Sub(v.frame().At))+" ago")
	} else {
		parts = append(parts, "every "+duration(v.Interval))
		if v.Interval < time.Second {
			parts[0] = "every " + v.Interval.String()
		}
	}
	if v.paused {
		parts = append(parts, "PAUSED")
	}
	return strings.Join(parts, " ")
}

// section is a part of the overview.
type section struct {
	table *table
	wants int // lines
	least int
	lines int
}

// share gives each section its lines: what it wants, or less where there is no room. The last ones lose first.
func share(sections []*section, lines int) {
	left := lines
	for _, s := range sections {
		s.lines = min(s.wants, s.least)
		left -= s.lines
	}
	for i := len(sections) - 1; i >= 0 && left < 0; i-- {
		cut := min(sections[i].lines, -left)
		if rest := sections[i].lines - cut; rest < 2 { // a heading alone is no use
			cut = sections[i].lines
		}
		sections[i].lines -= cut
		left += cut
	}
	for given := true; left > 0 && given; {
		given = false
		for _, s := range sections {
			if left > 0 && s.lines < s.wants && s.lines > 0 {
				s.lines++
				left--
				given = true
			}
		}
	}
}

func (v *View) drawOverview(c *canvas, f *Frame) {
	jobs := v.jobs(f)
	chosen := v.chosen(jobs)
	why := v.why(f, jobs, chosen, c.width, c.height < lowHeight)
	room := c.height - 2 // without header and footer
	whySection := &section{wants: len(why), least: min(len(why), 4)}
	jobTable := v.jobTable(f, jobs)
	windows := v.windowTable(f)
	gpus := v.gpuTable(f)
	disks := v.diskTable(f, len(f.Disks))
	all := []*section{
		whySection,
		{table: jobTable, least: 3},
		{table: gpus, least: 2},
		{table: disks, least: 2},
		{table: windows, least: 2},
	}
	for _, s := range all[1:] {
		s.wants = s.table.height(c.width)
	}
	share(all, room)
	rows := all[1].lines - 1
	if all[1].lines >= 3 && groups(arrange(jobTable.columns, c.width)) {
		rows--
	}
	if len(jobs) > 0 {
		jobTable.selected = chosen
	}
	if chosen >= rows-1 && len(jobs) > rows {
		jobTable.first = max(0, chosen-rows+1)
		if jobTable.first+rows < len(jobs) { // the last line counts the others
			jobTable.first++
		}
	}
	all[3].table = v.diskTable(f, all[3].lines-1)
	y := 1
	for _, i := range []int{2, 3, 1, 4} {
		if s := all[i]; s.lines > 1 {
			s.table.draw(c, y, s.lines)
			y += s.lines
		}
	}
	for i, line := range why[:min(len(why), max(whySection.lines, c.height-1-y))] {
		if i == 0 {
			c.fill(y, heading)
			c.put(0, y, c.width, line, heading)
		} else {
			c.put(0, y, c.width, line, normal)
		}
		y++
		if y >= c.height-1 {
			return
		}
	}
}

// lowHeight is the height below which a job is explained in three lines: two of the finding, and one of what to try.
const lowHeight = 24

// why is the finding of the selected job, what to try, and what could not be seen. A brief one has three lines.
func (v *View) why(f *Frame, jobs []Job, chosen, width int, brief bool) []string {
	var lines []string
	if len(jobs) > 0 {
		j := &jobs[chosen]
		lines = append(lines, "WHY "+j.label()+", "+j.Recent.over())
		found := indented("", finding(&j.Recent), width)
		if brief {
			found = found[:min(len(found), 2)]
		}
		lines = append(lines, found...)
		lines = append(lines, indented("Try: ", j.Recent.Remedy, width)...)
		if brief {
			return lines[:min(len(lines), 4)]
		}
		if slices.ContainsFunc(jobs, func(j Job) bool { return j.Recent.Split && j.Recent.GPUs == 0 }) {
			lines = append(lines, indented("", "c: without a GPU, busy is the program's time on a CPU.", width)...)
		}
	} else {
		lines = append(lines, "WHY")
	}
	for _, note := range f.Notes {
		lines = append(lines, indented("Note: ", note, width)...)
	}
	if len(lines) == 1 {
		lines = append(lines, "No job to explain.")
	}
	return lines
}

// indented wraps a sentence below its first word.
func indented(start, sentence string, width int) []string {
	lines := output.WrapText(sentence, max(10, width-len(start)))
	for i := range lines {
		lines[i] = start + lines[i]
		start = strings.Repeat(" ", len(start))
	}
	return lines
}

// footer names the keys.
func (v *View) footer(c *canvas) {
	y := c.height - 1
	c.fill(y, heading)
	if v.typing {
		c.put(0, y, c.width, "filter: "+v.filter+"_  (enter keeps it, esc clears it)", heading)
		return
	}
	keys := "q quit  h help  p pause  up/down select  enter why  t tree  s sort: " + orderNames[v.order] +
		"  / filter  +/- interval"
	short := "q quit  h help  p pause  enter why  t tree  s sort  / filter"
	switch {
	case v.mode == help:
		keys, short = "esc back  q quit", "esc back  q quit"
	case v.mode == details || v.mode == processes:
		keys = "esc back  up/down scroll  p pause  left/right step  h help  q quit"
		short = "esc back  up/down scroll  q quit"
	}
	if v.filter != "" {
		keys += "  [" + v.filter + "]"
	}
	if output.Columns(keys) > c.width {
		keys = short
	}
	c.put(0, y, c.width, keys, heading)
}
