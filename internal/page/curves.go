package page

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/ledger"
	"github.com/stallspan/stallspan/internal/store"
	"github.com/stallspan/stallspan/internal/window"
)

// Curves are quantities over time, in panels that share one time axis.
type Curves struct {
	Start  float64 `json:"start_s"` // of the first interval, after the origin of the page
	Step   float64 `json:"step_s"`
	Panels []Panel `json:"panels"`
}

// Panel is one picture with a value axis of its own.
type Panel struct {
	Title   string  `json:"title"`
	Unit    string  `json:"unit"`          // "%", "B/s", "s", "W", "°C", "B" or "" for a number
	Max     float64 `json:"max,omitempty"` // upper end of the value axis; 0 if the values decide
	Stacked bool    `json:"stacked,omitempty"`
	Log     bool    `json:"log,omitempty"` // a logarithmic value axis
	Lines   []Line  `json:"lines"`
	Marks   []Mark  `json:"marks,omitempty"`
	Note    string  `json:"note,omitempty"` // what is left out
}

// Line is one curve: a mean for each interval.
type Line struct {
	Name   string `json:"name"`
	Part   string `json:"part,omitempty"` // of a ledger: it decides the colour
	Device int    `json:"device"`         // lines of one device have one colour
	Dashed bool   `json:"dashed,omitempty"`
	Values Values `json:"values"`
}

// Mark is a level on the value axis, such as what a disk can do.
type Mark struct {
	Name   string  `json:"name"`
	Device int     `json:"device"`
	Value  float64 `json:"value"`
}

// Values are means. NaN stands for an interval that is not known.
type Values []float64

// MarshalJSON writes four significant digits, and null for NaN.
func (v Values) MarshalJSON() ([]byte, error) {
	out := make([]byte, 0, 2+6*len(v))
	out = append(out, '[')
	for i, x := range v {
		if i > 0 {
			out = append(out, ',')
		}
		if math.IsNaN(x) || math.IsInf(x, 0) {
			out = append(out, "null"...)
		} else {
			out = strconv.AppendFloat(out, x, 'g', 4, 64)
		}
	}
	return append(out, ']'), nil
}

// Bounds of the curves of a page.
const (
	maxPoints = 2000 // of a curve
	maxDisks  = 8    // the disks that moved most
	maxGPUs   = 16
	maxJobs   = 8
)

// minStep is the shortest interval: that of the readings, by default.
const minStep = 100 * time.Millisecond

// Ceilings are the highest read throughputs that were seen of disks, in bytes per second, by the disk's name.
type Ceilings map[string]float64

// CeilingsOf are the ceilings that reports name.
func CeilingsOf(reports []*window.Report) Ceilings {
	found := Ceilings{}
	for _, r := range reports {
		for i := range r.Disks {
			d := &r.Disks[i]
			found[d.Name] = max(found[d.Name], d.ReadCeiling)
		}
	}
	return found
}

// Source is what curves are read from, and whose are shown.
type Source struct {
	History  *history.History
	Ceilings Ceilings
	Jobs     func(id string) bool // whether a job's curves are shown; nil for all
	Past     *Past                // what the history does not know; nil for nothing. It has the same intervals
	Whole    bool                 // curves that are 0 all the time are kept, of all disks
}

// maker reads curves from a history.
type maker struct {
	Source
	start  time.Duration
	step   time.Duration
	points int
}

// NewCurves returns the curves of the time from origin to end, both on the monotonic clock, or of as much of it as the
// history still holds.
func NewCurves(h *history.History, ceilings Ceilings, origin, end time.Duration) Curves {
	start := origin
	if first, ok := oldest(h); ok {
		start = max(start, first)
	}
	if end <= start {
		return Curves{}
	}
	step := max(minStep, (end-start+maxPoints-1)/maxPoints)
	return Source{History: h, Ceilings: ceilings}.Every(step, origin, start, end)
}

// Every returns curves of a time on the monotonic clock, with a point for each whole step. Times of the curves count
// from origin.
func (s Source) Every(step, origin, start, end time.Duration) Curves {
	m := &maker{Source: s, start: start, step: step, points: int((end - start) / step)}
	c := Curves{Start: (m.start - origin).Seconds(), Step: m.step.Seconds(), Panels: []Panel{}}
	if m.points <= 0 {
		return c
	}
	for _, p := range slices.Concat(m.ledgers(), m.gpuBusy(), m.disks(), m.pressure(), m.cores(), m.gpuDetails()) {
		if len(p.Lines) > 0 {
			c.Panels = append(c.Panels, p)
		}
	}
	return c
}

// oldest is the time of the first reading in the history.
func oldest(h *history.History) (first time.Duration, ok bool) {
	for _, s := range []history.Series{history.HostCPUTime, history.DiskReadBytes, history.LedgerBusy} {
		if at, found := h.First(s); found && (!ok || at < first) {
			first, ok = at, true
		}
	}
	return first, ok
}

// jobName is the name of a job without the start of its process, which distinguishes it from an earlier one.
func jobName(id string) string {
	name, started, ok := strings.Cut(id, " of ")
	if !ok || !strings.HasPrefix(id, "process ") || strings.Trim(started, "0123456789") != "" {
		return id
	}
	return name
}

// shows reports whether a job's curves are shown. "" stands for the whole machine.
func (m *maker) shows(job string) bool { return job == "" || m.Jobs == nil || m.Jobs(job) }

func (m *maker) at(i int) time.Duration { return m.start + time.Duration(i)*m.step }

// grown returns the growth of a quantity in each interval, divided by the step; NaN where it is not known. It returns
// nil if no interval is known.
func (m *maker) grown(s history.Series, id string) Values {
	key := history.Key{Series: s, ID: id}
	gone, left := m.History.Gone(key)
	return m.values(func(i int) float64 {
		d, ok := m.History.Between(key, history.Point{At: m.at(i)}, history.Point{At: m.at(i + 1)})
		switch {
		case ok && !d.Reset && (!left || m.at(i+1) <= gone):
			return d.Value / m.step.Seconds()
		case m.Past != nil:
			return m.Past.rate(s, id, i)
		}
		return math.NaN()
	})
}

// values returns the values of all intervals, or nil if none is known.
func (m *maker) values(at func(i int) float64) Values {
	values := make(Values, m.points)
	known := false
	for i := range values {
		values[i] = at(i)
		known = known || !math.IsNaN(values[i])
	}
	if !known {
		return nil
	}
	return values
}

// zero reports whether no interval has a value above 0.
func (v Values) zero() bool { return !slices.ContainsFunc(v, func(x float64) bool { return x > 0 }) }

func (v Values) sum() (sum float64) {
	for _, x := range v {
		if !math.IsNaN(x) {
			sum += x
		}
	}
	return sum
}

// scaled multiplies all values, in place.
func (v Values) scaled(factor float64) Values {
	for i := range v {
		v[i] *= factor
	}
	return v
}

// without takes a part out of a sum, in place, and returns it. What is not known of the part is 0; nil if nothing is.
func (v Values) without(part Values) Values {
	for i := range part {
		if part[i] = min(v[i], part[i]); math.IsNaN(part[i]) {
			part[i] = 0 * v[i]
		}
		v[i] -= part[i]
	}
	return part
}

// ratio is the quotient of two curves; NaN where one of them is not above 0.
func ratio(a, b Values) Values {
	if a == nil || b == nil {
		return nil
	}
	out := make(Values, len(a))
	for i := range a {
		if out[i] = math.NaN(); a[i] > 0 && b[i] > 0 {
			out[i] = a[i] / b[i]
		}
	}
	return out
}

// plus adds two curves. nil stands for zero.
func plus(a, b Values) Values {
	if a == nil {
		return b
	}
	for i := range b {
		a[i] += b[i]
	}
	return a
}

// percent is the value axis of a share.
const percent = 100

// ledgers has a panel for each job: the mean ledger of its GPUs, as shares of the time.
func (m *maker) ledgers() (panels []Panel) {
	gpus := map[string][]string{} // by job
	var jobs []string
	for _, id := range m.known(history.LedgerBusy) {
		job, gpu, _ := strings.Cut(id, "\x00")
		if !m.shows(job) {
			continue
		}
		if gpus[job] == nil {
			jobs = append(jobs, job)
		}
		gpus[job] = append(gpus[job], gpu)
	}
	if len(jobs) > 1 { // with a job, the whole machine says nothing more
		jobs = slices.DeleteFunc(jobs, func(job string) bool { return job == "" })
	}
	for _, job := range jobs[:min(len(jobs), maxJobs)] {
		ids := gpus[job]
		if len(ids) > 1 { // the ledger without a GPU is of the time before one was used
			ids = slices.DeleteFunc(ids, func(gpu string) bool { return gpu == "" })
		}
		if len(ids) > 1 { // the store has means over those that are known
			ids = slices.DeleteFunc(ids, func(gpu string) bool { return gpu == someGPU })
		}
		panels = append(panels, m.ledger(job, ids))
	}
	return panels
}

func (m *maker) ledger(job string, gpus []string) Panel {
	title, withGPU := "Where the time went", gpus[0] != ""
	if job != "" {
		title += ": " + jobName(job)
	}
	p := Panel{Title: title, Unit: "%", Max: percent, Stacked: true}
	var busy, storage, cpu, ready Values
	for _, gpu := range gpus {
		id := ledger.ID(job, gpu)
		busy = plus(busy, m.grown(history.LedgerBusy, id))
		storage = plus(storage, m.grown(history.LedgerStorage, id))
		cpu = plus(cpu, m.grown(history.LedgerCPU, id))
		ready = plus(ready, m.grown(history.LedgerReady, id))
	}
	if busy == nil || storage == nil || cpu == nil {
		return p
	}
	share := percent / float64(len(gpus))
	busy, storage, cpu = busy.scaled(share), storage.scaled(share), cpu.scaled(share)
	other := make(Values, m.points)
	for i := range other {
		other[i] = max(0, percent-busy[i]-storage[i]-cpu[i])
	}
	noCore := cpu.without(ready.scaled(share))
	if withGPU {
		p.Lines = []Line{{Name: "GPU busy", Part: "busy", Values: busy}}
	}
	p.Lines = append(p.Lines, Line{Name: "storage", Part: "storage", Values: storage})
	switch {
	case withGPU:
		p.Lines = append(p.Lines, Line{Name: "CPU", Part: "cpu", Values: cpu})
	case m.Whole || !cpu.zero():
		p.Lines = append(p.Lines, Line{Name: "on CPU", Part: "busy", Values: cpu})
	}
	if noCore != nil && (m.Whole || !noCore.zero()) {
		p.Lines = append(p.Lines, Line{Name: "no core", Part: "ready", Values: noCore})
	}
	p.Lines = append(p.Lines, Line{Name: "other", Part: "other", Values: other})
	return p
}

// known are the names of a quantity, in order.
func (m *maker) known(s history.Series) []string {
	ids := append(m.History.Known(s), m.Past.known(s)...)
	slices.Sort(ids)
	return slices.Compact(ids)
}

// gpus are the GPUs in the order of nvidia-smi.
func (m *maker) gpus() []string {
	ids := m.known(history.GPUBusyTime)
	slices.SortStableFunc(ids, func(a, b string) int {
		x, y := m.GPUName(a), m.GPUName(b)
		return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y)) // GPU 2 before GPU 10
	})
	return ids
}

func (m *maker) gpuBusy() []Panel {
	p := Panel{Title: "GPU", Unit: "%", Max: percent}
	ids := m.gpus()
	for device, id := range ids[:min(len(ids), maxGPUs)] {
		if busy := m.grown(history.GPUBusyTime, id); busy != nil {
			p.Lines = append(p.Lines, Line{Name: m.GPUName(id) + " busy", Device: device, Values: busy.scaled(percent)})
		}
		if active := m.detail(id, history.SMActive); active != nil {
			p.Lines = append(p.Lines, Line{
				Name: m.GPUName(id) + " SMs active", Device: device, Values: active.scaled(percent), Dashed: true,
			})
		}
	}
	if more := len(ids) - maxGPUs; more > 0 {
		p.Note = strconv.Itoa(more) + " more GPUs are not shown."
	}
	return []Panel{p}
}

// GPUName is how people name a GPU, where its number is known.
func (s Source) GPUName(id string) string {
	if limits := s.History.Limits(id); limits.Clock > 0 || limits.Memory > 0 || limits.Power > 0 {
		return limits.Name()
	}
	return s.Past.gpuName(id)
}

// detail is the mean of a GPU's detail in each interval, or nil if none is known. Drivers report details once a second,
// so shorter intervals have the mean of the second around them.
func (m *maker) detail(gpu string, d history.Detail) Values {
	return m.values(func(i int) float64 {
		start, end := m.at(i), m.at(i+1)
		if widen := (time.Second - m.step) / 2; widen > 0 {
			start, end = start-widen, end+widen
		}
		means := m.History.Means(gpu, start, end)
		mean, ok := means.Get(d)
		switch {
		case ok:
			return mean
		case m.Past != nil:
			return m.Past.value(store.GPU, gpu, storedDetails[d], i)
		}
		return math.NaN()
	})
}

func (m *maker) gpuDetails() []Panel {
	panels := []Panel{
		{Title: "GPU power", Unit: "W"}, {Title: "GPU temperature", Unit: "°C"}, {Title: "GPU memory", Unit: "B"},
	}
	ids := m.gpus()
	for device, id := range ids[:min(len(ids), maxGPUs)] {
		for i, d := range []history.Detail{history.Power, history.Temperature, history.MemoryUsed} {
			if values := m.detail(id, d); values != nil {
				panels[i].Lines = append(panels[i].Lines, Line{Name: m.GPUName(id), Device: device, Values: values})
			}
		}
	}
	return panels
}

// diskCurves is what one disk did.
type diskCurves struct {
	name                string
	read, written       Values // bytes/s
	reads, writes       Values // operations/s
	readTime, writeTime Values // s/s, sum over operations
	queue               Values
}

func (d *diskCurves) moved() float64 { return d.read.sum() + d.written.sum() }

func (m *maker) disks() []Panel {
	var all []diskCurves
	for _, id := range m.known(history.DiskReadBytes) {
		d := diskCurves{
			name: id, read: m.grown(history.DiskReadBytes, id), written: m.grown(history.DiskWriteBytes, id),
			reads: m.grown(history.DiskReadIOs, id), writes: m.grown(history.DiskWriteIOs, id),
			readTime: m.grown(history.DiskReadTicks, id), writeTime: m.grown(history.DiskWriteTicks, id),
			queue: m.grown(history.DiskTimeInQueue, id),
		}
		if m.Whole || !d.read.zero() || !d.written.zero() {
			all = append(all, d)
		}
	}
	slices.SortStableFunc(all, func(a, b diskCurves) int { return cmp.Compare(b.moved(), a.moved()) })
	moved := Panel{Title: "Disk throughput", Unit: "B/s"}
	await := Panel{Title: "Time of a disk operation (await)", Unit: "s", Log: true}
	queue := Panel{Title: "Operations in flight (queue)", Unit: ""}
	if more := len(all) - maxDisks; more > 0 && !m.Whole {
		moved.Note = strconv.Itoa(more) + " disks that moved less are not shown."
		all = all[:maxDisks]
	}
	for i := range all {
		d := &all[i]
		m.add(&moved, i, d.name+" read", d.read, false)
		m.add(&moved, i, d.name+" written", d.written, true)
		if limit := m.Ceilings[d.name]; limit > 0 {
			moved.Marks = append(moved.Marks, Mark{d.name + " read, best second", i, limit})
		}
		if d.readTime.zero() && d.writeTime.zero() && d.moved() > 0 {
			continue // the kernel does not count them
		}
		m.add(&await, i, d.name+" read", ratio(d.readTime, d.reads), false)
		m.add(&await, i, d.name+" written", ratio(d.writeTime, d.writes), true)
		m.add(&queue, i, d.name, d.queue, false)
	}
	return []Panel{moved, await, queue}
}

// add adds a curve, unless it is 0 or unknown all the time.
func (m *maker) add(p *Panel, device int, name string, v Values, dashed bool) {
	if m.Whole && v != nil || !v.zero() {
		p.Lines = append(p.Lines, Line{Name: name, Device: device, Values: v, Dashed: dashed})
	}
}

func (m *maker) pressure() []Panel {
	p := Panel{Title: "Pressure: time in which tasks waited for I/O", Unit: "%", Max: percent}
	for i, scope := range m.known(history.IOSome) {
		name := scope
		if name == "" || name == "host" {
			name = "whole machine"
		} else if m.Jobs != nil {
			continue // the name of a cgroup may name its owner
		}
		if len(p.Lines) < 2*maxJobs {
			m.add(&p, i, name+", some", m.grown(history.IOSome, scope).scaled(percent), false)
			m.add(&p, i, name+", all", m.grown(history.IOFull, scope).scaled(percent), true)
		}
	}
	return []Panel{p}
}

func (m *maker) cores() []Panel {
	p := Panel{Title: "Cores at work", Unit: ""}
	m.add(&p, 0, "whole machine", m.grown(history.HostCPUTime, ""), false)
	jobs := slices.DeleteFunc(m.known(history.JobCPUTime), func(id string) bool { return !m.shows(id) })
	for i, id := range jobs[:min(len(jobs), maxJobs)] {
		m.add(&p, i+1, jobName(id), m.grown(history.JobCPUTime, id), false)
	}
	return []Panel{p}
}
