package history

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/stallspan/stallspan/agent/internal/events"
	"github.com/stallspan/stallspan/agent/internal/output"
	"github.com/stallspan/stallspan/agent/internal/reports"
	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/store"
)

// lastRank is that of the columns that are left out first.
const lastRank = 4

// maxHistoryRows is how many intervals the table shows, and windows and events.
const maxHistoryRows = 24

// tableSteps are lengths of intervals that people count in.
var tableSteps = []time.Duration{storedStep, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute,
	10 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour,
	12 * time.Hour, 24 * time.Hour}

// tableStep is the shortest length with which a time has few enough intervals.
func tableStep(length time.Duration) time.Duration {
	for _, step := range tableSteps {
		if length <= maxHistoryRows*step {
			return step
		}
	}
	return maxStep
}

// table collects what the table shows, which has few rows.
type table struct {
	run     *Run
	rows    []row
	gpus    bool
	disks   bool
	machine bool
	jobs    bool
	windows newestEntries
	events  newestEntries
}

// newestEntries are the last few of many.
type newestEntries struct {
	list []store.Entry
	left int // earlier ones
}

func (n *newestEntries) add(e store.Entry) {
	if len(n.list) == maxHistoryRows {
		n.list = append(n.list[:0], n.list[1:]...)
		n.left++
	}
	n.list = append(n.list, e)
}

// row is one interval: the mean and the least of all GPUs, the sums of all disks, and the slowest disk.
type row struct {
	start                       time.Time
	busy, busyMin, power, hot   quantity
	read, written, await, queue quantity
	slowest                     string // the disk of await
	pressure, cores             quantity
}

// quantity is a value that may not be known.
type quantity struct {
	value float64
	known bool
}

func (q *quantity) add(v float64) { q.value, q.known = q.value+v, true }

func (q *quantity) most(v float64) bool {
	if q.known && v <= q.value {
		return false
	}
	q.value, q.known = v, true
	return true
}

func (q *quantity) least(v float64) {
	if !q.known || v < q.value {
		q.value, q.known = v, true
	}
}

func (q quantity) text(form func(float64) string) string {
	if !q.known {
		return "-"
	}
	return form(q.value)
}

func (t *table) bucket(_ *bytes.Buffer, b *Bucket) error {
	for _, e := range b.Entries {
		if e.Kind == store.Window {
			t.windows.add(e)
		} else {
			t.events.add(e)
		}
	}
	if len(b.Devices) > 0 {
		t.rows = append(t.rows, t.row(b))
	}
	return nil
}

func (t *table) row(b *Bucket) (r row) {
	r.start = b.Start
	gpus := 0
	for _, d := range b.Devices {
		switch d.Of {
		case store.GPU:
			t.gpus = true
			if v, ok := d.Get(store.Busy); ok {
				gpus++
				r.busy.add(v)
				r.busyMin.least(v)
			}
			each(d, store.Power, r.power.add)
			each(d, store.Temperature, func(v float64) { r.hot.most(v) })
		case store.Disk:
			t.disks = true
			each(d, store.ReadBytes, r.read.add)
			each(d, store.WriteBytes, r.written.add)
			each(d, store.QueueMax, func(v float64) { r.queue.most(v) })
			each(d, store.ReadAwait, func(v float64) {
				if r.await.most(v) {
					r.slowest = d.Label()
				}
			})
		case store.Job:
			t.jobs = true
		case store.Machine:
			t.machine = true
			each(d, store.IOSome, r.pressure.add)
			each(d, store.Cores, r.cores.add)
		}
	}
	if gpus > 0 {
		r.busy.value /= float64(gpus)
	}
	return r
}

// each calls use with a value that is known.
func each(d *Device, name string, use func(float64)) {
	if v, ok := d.Get(name); ok {
		use(v)
	}
}

func (t *table) end(h *Run) error {
	return output.Printed(output.WriteTable(h.out, func(to *output.Table) { t.draw(to, h) }))
}

const timeFormat = "Mon 2 Jan 15:04"

func (t *table) draw(to *output.Table, h *Run) {
	to.Line(fmt.Sprintf("%s to %s, %s a row", h.From.Local().Format(timeFormat), h.Until.Local().Format(timeFormat),
		stepText(h.step)))
	if len(t.rows)+len(t.windows.list)+len(t.events.list) == 0 {
		if h.agent {
			to.Text("", "Nothing is kept of this time, but an agent runs now: it writes the first rows within a minute of "+
				"its start, and removes those older than history.max_age.")
			return
		}
		to.Line("Nothing is kept of this time: no agent ran, or it is older than history.max_age.")
		return
	}
	if t.gpus || t.disks || t.machine {
		to.Line("")
		t.curves(to)
	}
	t.listWindows(to)
	t.listEvents(to)
	if t.jobs && !t.gpus && !t.disks && !t.machine {
		to.Line("")
		to.Line("Curves of jobs have no room in this table: give --csv or --json. stallspan jobs has their sums.")
	}
}

func stepText(step time.Duration) string {
	switch {
	case step%time.Hour == 0:
		return fmt.Sprintf("%d h", step/time.Hour)
	case step%time.Minute == 0:
		return fmt.Sprintf("%d min", step/time.Minute)
	}
	return fmt.Sprintf("%d s", step/time.Second)
}

// cell is a column of the table. Where the screen is too narrow, those with the highest rank are left out.
type cell struct {
	shown bool
	rank  int
	head  [2]string
	width int
	text  func(r *row) string
}

func (t *table) curves(to *output.Table) {
	percent := func(v float64) string { return fmt.Sprintf("%.0f %%", 100*v) }
	number := func(v float64) string { return fmt.Sprintf("%.1f", v) }
	whole := func(unit string) func(float64) string {
		return func(v float64) string { return fmt.Sprintf("%.0f %s", v, unit) }
	}
	cells := []cell{
		{t.gpus, 0, [2]string{"GPU", "busy"}, 6, func(r *row) string { return r.busy.text(percent) }},
		{t.gpus, 0, [2]string{"idlest", "GPU"}, 7, func(r *row) string { return r.busyMin.text(percent) }},
		{t.gpus, 2, [2]string{"GPU", "power"}, 7, func(r *row) string { return r.power.text(whole("W")) }},
		{t.gpus, 4, [2]string{"", "hot"}, 6, func(r *row) string { return r.hot.text(whole("C")) }},
		{t.disks, 0, [2]string{"", "read"}, 11, func(r *row) string { return r.read.text(output.SpeedText) }},
		{t.disks, 4, [2]string{"", "written"}, 11, func(r *row) string { return r.written.text(output.SpeedText) }},
		{t.disks, 0, [2]string{"slowest", "read"}, 8, func(r *row) string { return r.await.text(explain.Duration) }},
		{t.disks, 1, [2]string{"", "of"}, 8, func(r *row) string { return r.slowest }},
		{t.disks, 1, [2]string{"longest", "queue"}, 8, func(r *row) string { return r.queue.text(number) }},
		{t.machine, 0, [2]string{"waiting", "for I/O"}, 8, func(r *row) string { return r.pressure.text(percent) }},
		{t.machine, 3, [2]string{"cores", "busy"}, 6, func(r *row) string { return r.cores.text(number) }},
	}
	layout := time.TimeOnly[:5]
	switch length := t.run.Until.Sub(t.run.From); {
	case length > 24*time.Hour:
		layout = "2 Jan 15:04"
	case t.run.step < time.Minute:
		layout = time.TimeOnly
	}
	width := len(layout)
	for _, c := range cells {
		width += columnWidth(&c)
	}
	for rank := lastRank; rank > 0 && width > to.Screen.Width(); rank-- {
		for i := range cells {
			if cells[i].rank == rank {
				width -= columnWidth(&cells[i])
				cells[i].shown = false
			}
		}
	}
	for i := range 2 {
		line := fmt.Sprintf("%-*s", len(layout), []string{"", "time"}[i])
		for _, c := range cells {
			if c.shown {
				line += fmt.Sprintf(" %*s", c.width, c.head[i])
			}
		}
		to.Line(line)
	}
	for i := range t.rows {
		line := fmt.Sprintf("%*s", len(layout), t.rows[i].start.Local().Format(layout))
		for _, c := range cells {
			if c.shown {
				text := c.text(&t.rows[i])
				line += fmt.Sprintf(" %*s", c.width, text[:min(len(text), c.width)])
			}
		}
		to.Line(line)
	}
}

func columnWidth(c *cell) int {
	if !c.shown {
		return 0
	}
	return 1 + c.width
}

func (t *table) listWindows(to *output.Table) {
	if len(t.windows.list) == 0 {
		return
	}
	to.Line("")
	to.Line("Windows")
	if t.windows.left > 0 {
		to.Line(fmt.Sprintf("... %d earlier, see --series window --json ...", t.windows.left))
	}
	previous := ""
	for _, e := range t.windows.list {
		var r explain.Report
		if json.Unmarshal(e.Text, &r) != nil {
			continue // of a later version
		}
		reports.ListRow(to, &r, "")
		if r.Finding != previous {
			to.Text("  ", r.Finding)
		}
		previous = r.Finding
	}
}

func (t *table) listEvents(to *output.Table) {
	if len(t.events.list) == 0 {
		return
	}
	to.Line("")
	to.Line("Events")
	if t.events.left > 0 {
		to.Line(fmt.Sprintf("... %d earlier, see --series event --json ...", t.events.left))
	}
	for _, e := range t.events.list {
		var event events.Shown
		if json.Unmarshal(e.Text, &event) == nil {
			to.Text("", event.Words())
		}
	}
}
