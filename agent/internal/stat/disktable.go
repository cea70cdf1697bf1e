package stat

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/stallspan/stallspan/agent/internal/output"
)

// column is a column of the disk table, with iostat's name and order.
type column struct {
	name  string
	width int
	rank  int // where the terminal is too narrow, the columns of the highest rank are left out first
	value func(d *Disk) *float64
}

const (
	kibi = 1024             // bytes: iostat's kB
	mebi = 1. / kibi / kibi // of a byte: nvidia-smi's unit of memory
)

var diskColumn = [...]column{
	{"r/s", 9, 0, func(d *Disk) *float64 { return &d.ReadsPerSecond }},
	{"rkB/s", 10, 0, func(d *Disk) *float64 { return new(d.ReadBytesPerSecond / kibi) }},
	{"rrqm/s", 9, 3, func(d *Disk) *float64 { return &d.ReadsMergedPerSecond }},
	{"r_await", 8, 0, func(d *Disk) *float64 { return d.ReadAwait }},
	{"rareq-sz", 9, 1, func(d *Disk) *float64 { return scaled(d.ReadSize, 1./kibi) }},
	{"w/s", 9, 0, func(d *Disk) *float64 { return &d.WritesPerSecond }},
	{"wkB/s", 10, 0, func(d *Disk) *float64 { return new(d.WriteBytesPerSecond / kibi) }},
	{"wrqm/s", 9, 3, func(d *Disk) *float64 { return &d.WritesMergedPerSecond }},
	{"w_await", 8, 0, func(d *Disk) *float64 { return d.WriteAwait }},
	{"wareq-sz", 9, 1, func(d *Disk) *float64 { return scaled(d.WriteSize, 1./kibi) }},
	{"d/s", 9, 4, func(d *Disk) *float64 { return d.DiscardsPerSecond }},
	{"dkB/s", 10, 4, func(d *Disk) *float64 { return scaled(d.DiscardBytesPerSecond, 1./kibi) }},
	{"d_await", 8, 4, func(d *Disk) *float64 { return d.DiscardAwait }},
	{"f/s", 9, 4, func(d *Disk) *float64 { return d.FlushesPerSecond }},
	{"f_await", 8, 4, func(d *Disk) *float64 { return d.FlushAwait }},
	{"await", 8, 2, func(d *Disk) *float64 { return d.Await }},
	{"aqu-sz", 8, 0, func(d *Disk) *float64 { return d.QueueDepth }},
	{"%util", 7, 0, func(d *Disk) *float64 { return scaled(d.Utilization, 100) }},
}

const (
	narrowDisk = 9  // columns for the name of a disk, at least
	widestDisk = 24 // and at most: what is longer loses its middle
)

// units is the unit of a disk's throughput: iostat's kB (1024 bytes), -m or -h.
type byteUnits struct{ mega, human bool }

// header is the name of a column in these units, as in iostat.
func (u byteUnits) header(c *column) string {
	if u.mega && c.sized() && !u.human {
		return strings.Replace(c.name, "kB", "MB", 1)
	}
	return c.name
}

// cell is the value of a column in these units.
func (u byteUnits) cell(c *column, d *Disk) string {
	v := c.value(d)
	switch {
	case v == nil:
	case u.human && (c.sized() || strings.HasSuffix(c.name, "-sz") && c.name != "aqu-sz"):
		return fmt.Sprintf("%*s", c.width, humanKB(*v))
	case u.human && c.name == "%util":
		return fmt.Sprintf("%*.1f%%", c.width-1, *v)
	case u.mega && c.sized():
		v = new(*v / kibi)
	}
	return number(v, c.width)
}

// sized reports whether iostat's -m changes a column. Mean sizes stay in kB there, too.
func (c *column) sized() bool { return strings.HasSuffix(c.name, "kB/s") }

// humanKB is a number of kB as iostat --human prints it.
func humanKB(v float64) string {
	units := "kMGTP"
	for v >= kibi && len(units) > 1 {
		v, units = v/kibi, units[1:]
	}
	return fmt.Sprintf("%.1f%c", v, units[0])
}

// drawDisks reports whether all columns fit.
func drawDisks(to *bytes.Buffer, disks []Disk, width int, units byteUnits) (all bool) {
	longest := narrowDisk
	for i := range disks {
		longest = max(longest, output.Columns(diskName(&disks[i])))
	}
	longest = min(longest, widestDisk)
	room := math.MaxInt
	if width > 0 {
		room = width - longest
	}
	// They depend only on the widths and not on the values, so that columns do not jump between intervals.
	shown, used := output.FitColumns(diskColumn[:], room, func(c *column) (int, int) { return c.rank, c.width })
	if width > 0 {
		longest = max(narrowDisk, min(longest, width-used))
	}
	line := output.Fit("Device", longest)
	for _, c := range shown {
		line += fmt.Sprintf("%*s", c.width, units.header(&c))
	}
	to.WriteString(line + "\n")
	for i := range disks {
		line := output.Fit(diskName(&disks[i]), longest)
		for _, c := range shown {
			line += units.cell(&c, &disks[i])
		}
		to.WriteString(line + "\n")
	}
	return len(shown) == len(diskColumn)
}

func diskName(d *Disk) string {
	if d.Leaf {
		return output.Printable(d.Name)
	}
	return output.Printable(d.Name) + "*"
}

// number writes a value right-aligned, with up to two decimals as space permits. A missing value is a dash.
func number(v *float64, width int) string {
	if v == nil {
		return fmt.Sprintf("%*s", width, "-")
	}
	text := ""
	for decimals := 2; decimals >= 0; decimals-- {
		if text = strconv.FormatFloat(*v, 'f', decimals, 64); len(text) < width {
			break
		}
	}
	return " " + strings.Repeat(" ", max(0, width-1-len(text))) + text
}
