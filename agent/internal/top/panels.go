package top

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gdamore/tcell/v3"

	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/window"
)

const (
	mib = 1 << 20
	gib = 1 << 30
)

// plural is "3 more GPUs".
func plural(n int, what string) string { return fmt.Sprintf("... %d more %s", n, what) }

// percent is a share as a whole number. The title has the unit.
func percent(share float64) string { return fmt.Sprintf("%.0f", 100*share) }

func percentOf(share *float64) string {
	if share == nil {
		return "-"
	}
	return percent(*share)
}

// decimal is a number of at most five characters, in the unit of its title.
func decimal(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v < 99.95:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}

func decimalOf(v *float64) string {
	if v == nil {
		return "-"
	}
	return decimal(*v)
}

// duration is a time in whole seconds: "41 s", "2m13s", "3h04m".
func duration(d time.Duration) string {
	d = d.Round(time.Second)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	}
	return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
}

// text is a cell without a style.
func text(s string) (string, tcell.Style) { return s, normal }

// gpuTable lists the GPUs.
func (v *View) gpuTable(f *Frame) *table {
	list := f.GPUs
	has := func(known func(*GPU) bool) bool {
		return slices.ContainsFunc(list, func(g GPU) bool { return known(&g) })
	}
	cells := func(get func(*GPU) string) func(int) (string, tcell.Style) {
		return func(row int) (string, tcell.Style) {
			if list[row].Status != "" {
				return "-", faint
			}
			return text(get(&list[row]))
		}
	}
	columns := []column{
		{title: "GPU", width: 12, grow: 26, left: true, cell: func(row int) (string, tcell.Style) {
			return strconv.Itoa(list[row].Index) + " " + strings.TrimPrefix(list[row].Name, "NVIDIA "), strong
		}},
		{title: "busy %", width: 6, cell: func(row int) (string, tcell.Style) {
			if list[row].Status != "" {
				return string(list[row].Status), red
			}
			return percentOf(list[row].Utilization), busyStyle(list[row].Utilization)
		}},
		{title: "history", width: 8, grow: 60, level: 1, draw: func(c *canvas, x, y, width, row int) {
			c.spark(x, y, width, v.history(width, func(f *Frame) float64 {
				if i := slices.IndexFunc(f.GPUs, func(g GPU) bool { return g.ID == list[row].ID }); i >= 0 {
					return valueOf(f.GPUs[i].Utilization)
				}
				return 0
			}), green)
		}},
		{title: "memory GiB", width: 10, cell: cells(func(g *GPU) string {
			if g.MemoryUsed == nil || g.MemoryTotal == nil {
				return "-"
			}
			return decimal(float64(*g.MemoryUsed)/gib) + "/" + decimal(float64(*g.MemoryTotal)/gib)
		})},
		{title: "power W", width: 8, level: 1, cell: cells(func(g *GPU) string {
			switch {
			case g.Power == nil:
				return "-"
			case g.PowerLimit == nil:
				return fmt.Sprintf("%.0f", *g.Power)
			}
			return fmt.Sprintf("%.0f/%.0f", *g.Power, *g.PowerLimit)
		})},
		{title: "temp C", width: 6, level: 4, cell: cells(func(g *GPU) string {
			if g.Temperature == nil {
				return "-"
			}
			return fmt.Sprintf("%.0f", *g.Temperature)
		})},
	}
	if has(func(g *GPU) bool { return g.SMActive != nil }) {
		columns = append(columns,
			column{title: "SM %", width: 5, level: 5, cell: cells(func(g *GPU) string { return percentOf(g.SMActive) })},
			column{title: "tensor %", width: 8, level: 5,
				cell: cells(func(g *GPU) string { return percentOf(g.TensorActive) })})
	}
	if has(func(g *GPU) bool { return g.ThrottledBy != "" && valueOf(g.Throttled) > 0 }) {
		columns = append(columns, column{title: "throttled", width: 16, level: 3, left: true,
			cell: func(row int) (string, tcell.Style) {
				u := &list[row].GPUUse
				if u.ThrottledBy == "" || valueOf(u.Throttled) == 0 {
					return text("-")
				}
				return u.ThrottledBy + " " + percentOf(u.Throttled) + " %", yellow
			}})
	}
	if has(func(g *GPU) bool { return len(g.Processes) > 0 }) {
		columns = append(columns, column{title: "by process", width: 14, grow: 48, level: 2, left: true,
			cell: cells(holdersText)})
	}
	return &table{columns: columns, rows: len(list), empty: f.NoGPUs, selected: -1, more: "GPUs"}
}

// holdersText names the processes on a GPU: "train.py 16.2, pid 4712 0.5", with their memory in GiB.
func holdersText(g *GPU) string {
	var names []string
	for _, h := range g.Processes {
		name := window.ShownName(h.Name)
		if name == "" {
			name = "pid " + strconv.Itoa(h.PID)
		}
		if h.Has {
			name += " " + decimal(float64(h.Memory)/gib)
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}

// busyStyle is green for a GPU that works, and red for one that idles.
func busyStyle(share *float64) tcell.Style {
	switch {
	case share == nil:
		return normal
	case *share < 0.3:
		return red
	case *share < 0.7:
		return yellow
	}
	return green
}

// lostStyle stands out for large shares of a stall.
func lostStyle(share float64, style tcell.Style) tcell.Style {
	switch {
	case share >= 0.3:
		return style.Bold(true)
	case share >= 0.1:
		return style
	}
	return normal
}

// diskTable lists the disks: all in the kernel's order if they fit, and else those that do most.
func (v *View) diskTable(f *Frame, rows int) *table {
	list := slices.Clone(f.Disks)
	if len(list) > rows {
		slices.SortStableFunc(list, func(a, b Disk) int { return cmp.Compare(b.load(), a.load()) })
	}
	cells := func(get func(*Disk) string) func(int) (string, tcell.Style) {
		return func(row int) (string, tcell.Style) { return text(get(&list[row])) }
	}
	highest := v.highest(f)
	return &table{rows: len(list), empty: f.NoDisks, selected: -1, more: "disks that do less", columns: []column{
		{title: "DISK", width: 12, grow: 26, left: true,
			cell: func(row int) (string, tcell.Style) { return list[row].Name, strong }},
		{title: "read MiB/s", width: 10, cell: cells(func(d *Disk) string { return decimal(d.ReadBytesPerSecond / mib) })},
		{title: "write", width: 6, cell: cells(func(d *Disk) string { return decimal(d.WriteBytesPerSecond / mib) })},
		{title: "await ms", width: 8, cell: cells(func(d *Disk) string { return decimalOf(d.Await) })},
		{title: "queue", width: 6, cell: cells(func(d *Disk) string { return decimalOf(d.QueueDepth) })},
		{title: "util %", width: 6, level: 1, cell: cells(func(d *Disk) string { return percentOf(d.Utilization) })},
		{title: "of ceiling", width: 10, level: 1, cell: func(row int) (string, tcell.Style) {
			share, ok := list[row].ofCeiling()
			if !ok {
				return "-", faint
			}
			return percent(share) + " %", lostStyle(share-0.5, red)
		}},
		{title: "ceiling", width: 8, level: 3, cell: cells(func(d *Disk) string {
			if d.ReadCeiling == 0 {
				return "-"
			}
			return decimal(d.ReadCeiling / mib)
		})},
		{title: "ops/s", width: 7, level: 4, cell: cells(func(d *Disk) string {
			return fmt.Sprintf("%.0f", d.ReadsPerSecond+d.WritesPerSecond)
		})},
		{title: "history", width: 8, grow: 60, level: 2, draw: func(c *canvas, x, y, width, row int) {
			c.spark(x, y, width, v.history(width, func(f *Frame) float64 {
				i := slices.IndexFunc(f.Disks, func(d Disk) bool { return d.Name == list[row].Name })
				if i < 0 || highest[list[row].Name] == 0 {
					return 0
				}
				return f.Disks[i].bytes() / highest[list[row].Name]
			}), yellow)
		}},
	}}
}

func (d *Disk) bytes() float64 { return d.ReadBytesPerSecond + d.WriteBytesPerSecond }

// load orders disks where not all are shown.
func (d *Disk) load() float64 { return d.bytes() + valueOf(d.QueueDepth)*mib }

// ofCeiling is the throughput as a share of what the disk has reached. It is unknown while no operation waits for
// another: what a disk reached with a queue that short is not what it can do.
func (d *Disk) ofCeiling() (share float64, ok bool) {
	if valueOf(d.QueueDepth) < 1 {
		return 0, false
	}
	if d.ReadCeiling > 0 {
		share, ok = d.ReadBytesPerSecond/d.ReadCeiling, true
	}
	if d.WriteCeiling > 0 {
		share, ok = max(share, d.WriteBytesPerSecond/d.WriteCeiling), true
	}
	return min(1, share), ok
}

func valueOf(v *float64) float64 {
	if v == nil {
		return 0
	}
	return *v
}

// shareColumns are the four parts of a ledger. A job without a GPU has its own time divided: its time on a CPU stands
// in the first one.
func shareColumns(group string, level int, get func(row int) Ledger) []column {
	names := [4]string{"busy %", "storage", "CPU", "other"}
	widths := [4]int{6, 7, 4, 5}
	columns := make([]column, len(names))
	for i := range columns {
		cell := func(row int) (string, tcell.Style) {
			l := get(row)
			share := l.parts()[i]
			switch {
			case !l.Split:
				return "-", faint
			case i == 0 && l.GPUs == 0:
				return percent(share) + "c", busyStyle(&share)
			case i == 0:
				return percent(share), busyStyle(&share)
			case i == 2 && l.GPUs == 0 && l.Ready == 0:
				return "-", normal
			case i == 3:
				return percent(share), lostStyle(share, normal)
			}
			return percent(share), lostStyle(share, partStyles[i])
		}
		columns[i] = column{title: names[i], group: group, width: widths[i], level: level, cell: cell}
	}
	return columns
}

// partsColumn draws a ledger as a bar.
func partsColumn(group string, get func(row int) Ledger) column {
	return column{title: "parts", group: group, width: 8, grow: 30, level: 4, draw: func(c *canvas, x, y, width, row int) {
		l := get(row)
		c.stack(x, y, width, l.parts())
	}}
}

// parts are the shares of a ledger in the order of the glyphs.
func (l *Ledger) parts() [4]float64 {
	if !l.Split {
		return [4]float64{}
	}
	if l.GPUs == 0 {
		return [4]float64{l.CPU, l.Storage, l.Ready, l.Other}
	}
	return [4]float64{l.Busy, l.Storage, l.CPU, l.Other}
}

// jobTable lists the jobs.
func (v *View) jobTable(f *Frame, list []Job) *table {
	recent := func(row int) Ledger { return list[row].Recent }
	columns := []column{{title: v.titled("JOB", sortName), width: 14, grow: 34, left: true,
		cell: func(row int) (string, tcell.Style) {
			j := &list[row]
			style := strong
			if j.Ended {
				style = faint
			}
			return j.label(), style
		}}}
	last := "last " + duration(Recent)
	columns = append(columns, shareColumns(last, 0, recent)...)
	columns[1].title = v.titled("busy %", sortBusy)
	columns[2].title = v.titled("storage", sortStorage)
	columns = append(columns,
		partsColumn(last, recent),
		column{title: "watched", group: "since watched", width: 7, level: 3,
			cell: func(row int) (string, tcell.Style) { return text(duration(list[row].Watched)) }})
	columns = append(columns, shareColumns("since watched", 3, func(row int) Ledger { return list[row].Whole })...)
	columns = append(columns,
		column{title: v.titled("cores", sortCPU), group: "now", width: 6, level: 2,
			cell: func(row int) (string, tcell.Style) {
				if list[row].CPU < 0 {
					return "-", faint
				}
				return text(decimal(list[row].CPU))
			}},
		column{title: v.titled("MiB/s", sortRead), group: "now", width: 7, level: 2,
			cell: func(row int) (string, tcell.Style) {
				if !list[row].HasIO {
					return "-", faint
				}
				return text(decimal(list[row].Read / mib))
			}},
		column{title: "stalls", group: "history", width: 8, grow: 40, level: 5,
			draw: func(c *canvas, x, y, width, row int) {
				c.spark(x, y, width, v.history(width, func(f *Frame) float64 {
					if i := slices.IndexFunc(f.Jobs, func(j Job) bool { return j.ID == list[row].ID }); i >= 0 {
						parts := f.Jobs[i].Recent.parts()
						return parts[1] + parts[2]
					}
					return 0
				}), red)
			}},
		column{title: "verdict", group: " ", width: 13, grow: 18, level: 1, left: true,
			cell: func(row int) (string, tcell.Style) {
				if list[row].Ended {
					return "ended", faint
				}
				return text(cmp.Or(string(list[row].Recent.Verdict), "-"))
			}})
	t := &table{columns: columns, rows: len(list), empty: f.NoJobs, selected: -1, more: "jobs"}
	if v.filter != "" && len(f.Jobs) > 0 {
		t.empty = fmt.Sprintf("No job's name holds %q: / changes the filter.", v.filter)
	}
	return t
}

func (j *Job) label() string {
	if j.PID > 0 {
		return fmt.Sprintf("%s %d", window.ShownName(j.Name), j.PID)
	}
	return window.ShownName(j.Name)
}

// titled marks the column that the jobs are sorted by.
func (v *View) titled(title string, by order) string {
	if v.order == by {
		return title + "*"
	}
	return title
}

// windowTable lists the windows that programs announced.
func (v *View) windowTable(f *Frame) *table {
	list := f.Windows
	ledger := func(row int) Ledger { return list[row].ledger() }
	columns := []column{{title: "WINDOW", width: 14, grow: 34, left: true, cell: func(row int) (string, tcell.Style) {
		return explain.Label(list[row].Label(), list[row].Unfinished), strong
	}}}
	columns = append(columns, shareColumns("", 0, ledger)...)
	columns = append(columns, []column{
		partsColumn("", ledger),
		{title: "took", width: 8, level: 2, cell: func(row int) (string, tcell.Style) {
			return text(explain.Duration(list[row].Duration))
		}},
		{title: "ended", width: 8, level: 2, cell: func(row int) (string, tcell.Style) {
			if list[row].Open {
				return "open", yellow
			}
			return text(list[row].End.Local().Format(time.TimeOnly))
		}},
		{title: "from", width: 10, grow: 22, level: 3, left: true,
			cell: func(row int) (string, tcell.Style) { return text(list[row].From) }},
		{title: "verdict", width: 18, level: 1, left: true, cell: func(row int) (string, tcell.Style) {
			w := &list[row]
			style := normal
			if w.Slow {
				style = red
			}
			return explain.Verdict(w.Verdict, w.Slow), style
		}},
	}...)
	return &table{columns: columns, rows: len(list), empty: f.NoWindows, selected: -1, more: "windows"}
}
