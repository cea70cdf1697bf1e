package stat

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/stallspan/stallspan/agent/internal/output"
	"github.com/stallspan/stallspan/agent/internal/quantile"
	"github.com/stallspan/stallspan/internal/sample"
)

// totals is the summary of many intervals: the minimum, mean, 95th percentile and maximum of each device's values.
type summary struct {
	intervals int
	devices   []*deviceTotals // in the order in which they appeared
}

// deviceTotals are the values of one device.
type deviceTotals struct {
	kind, name string
	values     []*distribution
}

// maxTotals bounds the devices: their names change as they are plugged in.
const maxTotals = 1024

// maxIdle bounds the idle devices that the summary names.
const maxIdle = 8

// print adds an interval, and prints nothing.
func (t *summary) print(_ *bytes.Buffer, r *Rates) error {
	t.intervals++
	if p := r.Pressure; p != nil {
		t.device("machine", "machine").add("io some %", new(100*p.Some), 1)
	}
	if c := r.BusiestCore; c != nil {
		t.device("machine", "machine").add("core %", new(100*c.Utilization), 1)
	}
	for i := range r.GPUs {
		g := &r.GPUs[i]
		d := t.device(g.ID, sample.GPUName(g.vendor, g.Index)+sliceOf(g))
		d.add("%util", scaled(g.Utilization, 100), 1)
		d.add("MiB used", scaled(g.MemoryUsed, mebi), 1)
		d.add("power W", g.Power, 1)
		d.add("temp C", g.Temperature, 1)
	}
	for i := range r.Disks {
		s := &r.Disks[i]
		d := t.device("disk", diskName(s))
		d.add("rMB/s", new(s.ReadBytesPerSecond/kibi/kibi), 1)
		d.add("wMB/s", new(s.WriteBytesPerSecond/kibi/kibi), 1)
		operations := (s.ReadsPerSecond + s.WritesPerSecond) * r.Interval.Seconds()
		if s.DiscardsPerSecond != nil {
			operations += *s.DiscardsPerSecond * r.Interval.Seconds()
		}
		d.add("await ms", s.Await, operations)
		d.add("aqu-sz", s.QueueDepth, 1)
		d.add("%util", scaled(s.Utilization, 100), 1)
	}
	return nil
}

// device is the device of this kind and name; nil if there are too many.
func (t *summary) device(kind, name string) *deviceTotals {
	for _, d := range t.devices {
		if d.kind == kind && d.name == name {
			return d
		}
	}
	if len(t.devices) == maxTotals {
		return nil
	}
	d := &deviceTotals{kind: kind, name: name}
	t.devices = append(t.devices, d)
	return d
}

// add adds a value with its weight in the mean. A missing one does not count.
func (d *deviceTotals) add(name string, value *float64, weight float64) {
	if d == nil || value == nil {
		return
	}
	i := slices.IndexFunc(d.values, func(v *distribution) bool { return v.name == name })
	if i < 0 {
		i = len(d.values)
		d.values = append(d.values, &distribution{name: name, lowest: math.Inf(1)})
	}
	d.values[i].add(*value, weight)
}

// idle reports whether a device never did anything.
func (d *deviceTotals) idle() bool {
	return d.kind == "disk" && !slices.ContainsFunc(d.values, func(v *distribution) bool { return v.highest > 0 })
}

func (t *summary) draw(to *output.Table) {
	if t.intervals == 0 {
		to.Line("No complete interval.")
		return
	}
	longest := narrowDisk
	for _, d := range t.devices {
		if !d.idle() {
			longest = max(longest, min(widestDisk, output.Columns(d.name)))
		}
	}
	row := func(device, value, low, mean, p95, high string) {
		to.Line(fmt.Sprintf("%s %s %10s %10s %10s %10s", output.Fit(device, longest), output.Fit(value, 9), low,
			mean, p95, high))
	}
	row("device", "", "min", "mean", "p95", "max")
	var idle []string
	for _, d := range t.devices {
		if d.idle() && strings.HasPrefix(d.name, "loop") {
			continue
		}
		if d.idle() {
			idle = append(idle, d.name)
			continue
		}
		name := d.name
		for _, v := range d.values {
			text := func(f float64) string { return strconv.FormatFloat(f, 'f', 2, 64) }
			row(name, v.name, text(v.lowest), text(v.sum/max(v.weight, math.SmallestNonzeroFloat64)), text(v.quantile(0.95)),
				text(v.highest))
			name = ""
		}
	}
	note := fmt.Sprintf("Of %s.", output.Count(t.intervals, "interval"))
	if len(idle) > 0 {
		note += fmt.Sprintf(" %s did nothing: %s.", output.Count(len(idle), "block device"), output.FirstOf(idle, maxIdle))
	}
	to.Text("", note)
}

// distribution keeps the first values, and counts all: its size does not grow with time.
type distribution struct {
	quantile.Histogram
	name            string
	lowest, highest float64
	sum, weight     float64
	few             []float64 // the values, while there are at most maxFew
}

// maxFew is up to how many values quantiles are exact.
const maxFew = 64

func (d *distribution) add(v, weight float64) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return
	}
	d.lowest, d.highest = min(d.lowest, v), max(d.highest, v)
	d.sum += v * weight
	d.weight += weight
	if len(d.few) < maxFew {
		d.few = append(d.few, v)
	}
	d.Add(v)
}

// quantile is the value that this share of the values did not exceed (nearest rank). It is exact for few values, and
// within 1 % for many.
func (d *distribution) quantile(share float64) float64 {
	if d.N > 0 && d.N <= maxFew {
		return slices.Sorted(slices.Values(d.few))[uint64(math.Ceil(share*float64(d.N)))-1]
	}
	return min(d.highest, max(d.lowest, d.Quantile(share)))
}
