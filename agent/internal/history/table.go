package history

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/stallspan/stallspan/agent/internal/events"
	"github.com/stallspan/stallspan/agent/internal/output"
	"github.com/stallspan/stallspan/agent/internal/reports"
	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/store"
)

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
	seen    map[store.Kind]bool // of devices
	windows newestEntries
	events  newestEntries
}

// newestEntries are the last few of many.
type newestEntries struct {
	newest []store.Entry
	left   int // earlier ones
}

func (n *newestEntries) add(e store.Entry) {
	if len(n.newest) == maxHistoryRows {
		n.newest = slices.Delete(n.newest, 0, 1)
		n.left++
	}
	n.newest = append(n.newest, e)
}

// row is one interval, with a cell for each of the columns.
type row struct {
	start time.Time
	cells []cell
}

// cell is the values of all devices of a kind, and the name of the device with the highest.
type cell struct {
	fold
	highest string
}

func (c *cell) add(d *Device, v float64) {
	if c.weight == 0 || v > c.high {
		c.highest = d.Label()
	}
	c.fold.add(v, 1)
}

// column is a column of the table. Where the screen is too narrow, those with the highest rank are left out.
type tableColumn struct {
	of       store.Kind
	quantity string
	value    func(*cell) float64 // nil for the device with the highest value
	rank     int
	head     [2]string
	width    int
	form     func(float64) string
	at       int // its place in a row
}

func sum(c *cell) float64   { return c.sum }
func mean(c *cell) float64  { return c.sum / c.weight }
func least(c *cell) float64 { return c.low }
func most(c *cell) float64  { return c.high }

func percent(v float64) string { return fmt.Sprintf("%.0f %%", 100*v) }
func decimal(v float64) string { return fmt.Sprintf("%.1f", v) }
func watts(v float64) string   { return fmt.Sprintf("%.0f W", v) }
func celsius(v float64) string { return fmt.Sprintf("%.0f C", v) }

var tableColumns = [...]tableColumn{
	{store.GPU, store.Busy, mean, 0, [2]string{"GPU", "busy"}, 6, percent, 0},
	{store.GPU, store.Busy, least, 0, [2]string{"idlest", "GPU"}, 7, percent, 0},
	{store.GPU, store.Power, sum, 2, [2]string{"GPU", "power"}, 7, watts, 0},
	{store.GPU, store.Temperature, most, 4, [2]string{"", "hot"}, 6, celsius, 0},
	{store.Disk, store.ReadBytes, sum, 0, [2]string{"", "read"}, 11, output.SpeedText, 0},
	{store.Disk, store.WriteBytes, sum, 4, [2]string{"", "written"}, 11, output.SpeedText, 0},
	{store.Disk, store.ReadAwait, most, 0, [2]string{"slowest", "read"}, 8, explain.Duration, 0},
	{store.Disk, store.ReadAwait, nil, 1, [2]string{"", "of"}, 8, nil, 0},
	{store.Disk, store.QueueMax, most, 1, [2]string{"longest", "queue"}, 8, decimal, 0},
	{store.Machine, store.IOSome, sum, 0, [2]string{"waiting", "for I/O"}, 8, percent, 0},
	{store.Machine, store.Cores, sum, 3, [2]string{"cores", "busy"}, 6, decimal, 0},
}

// text is the column in a row.
func (c *tableColumn) text(r *row) string {
	at := &r.cells[c.at]
	switch {
	case c.value == nil:
		return at.highest
	case at.weight == 0:
		return "-"
	}
	return c.form(c.value(at))
}

func (t *table) bucket(_ *bytes.Buffer, b *Bucket) error {
	for _, e := range b.Entries {
		if e.Kind == store.Window {
			t.windows.add(e)
		} else {
			t.events.add(e)
		}
	}
	if len(b.Devices) == 0 {
		return nil
	}
	r := row{start: b.Start, cells: make([]cell, len(tableColumns))}
	for _, d := range b.Devices {
		t.seen[d.Of] = true
		for i := range tableColumns {
			if v, ok := d.Get(tableColumns[i].quantity); ok && tableColumns[i].of == d.Of {
				r.cells[i].add(d, v)
			}
		}
	}
	t.rows = append(t.rows, r)
	return nil
}

func (t *table) end(h *Run) error {
	return output.Printed(output.WriteTable(h.out, func(to *output.Table) { t.draw(to, h) }))
}

const timeFormat = "Mon 2 Jan 15:04"

func (t *table) draw(to *output.Table, h *Run) {
	to.Line(fmt.Sprintf("%s to %s, %s a row", h.From.Local().Format(timeFormat), h.Until.Local().Format(timeFormat),
		stepText(h.step)))
	if len(t.rows)+len(t.windows.newest)+len(t.events.newest) == 0 {
		if h.agent {
			to.Text("", "Nothing is kept of this time, but an agent runs now: it writes the first rows within a minute of "+
				"its start, and removes those older than history.max_age.")
			return
		}
		to.Line("Nothing is kept of this time: no agent ran, or it is older than history.max_age.")
		return
	}
	curves := t.seen[store.GPU] || t.seen[store.Disk] || t.seen[store.Machine]
	if curves {
		to.Line("")
		t.curves(to)
	}
	t.listWindows(to)
	t.listEvents(to)
	if t.seen[store.Job] && !curves {
		to.Line("")
		to.Line("Curves of jobs have no room in this table: give --json. stallspan jobs has their sums.")
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

func (t *table) curves(to *output.Table) {
	var cells []tableColumn
	for i, c := range tableColumns {
		if c.at = i; t.seen[c.of] {
			cells = append(cells, c)
		}
	}
	layout := time.TimeOnly[:5]
	switch length := t.run.Until.Sub(t.run.From); {
	case length > 24*time.Hour:
		layout = "2 Jan 15:04"
	case t.run.step < time.Minute:
		layout = time.TimeOnly
	}
	cells, _ = output.FitColumns(cells, to.Screen.Width()-len(layout),
		func(c *tableColumn) (int, int) { return c.rank, 1 + c.width })
	for i := range 2 {
		line := fmt.Sprintf("%-*s", len(layout), []string{"", "time"}[i])
		for _, c := range cells {
			line += fmt.Sprintf(" %*s", c.width, c.head[i])
		}
		to.Line(line)
	}
	for i := range t.rows {
		line := fmt.Sprintf("%*s", len(layout), t.rows[i].start.Local().Format(layout))
		for _, c := range cells {
			text := c.text(&t.rows[i])
			line += fmt.Sprintf(" %*s", c.width, text[:min(len(text), c.width)])
		}
		to.Line(line)
	}
}

// list writes a heading and the entries, if there are any.
func (n *newestEntries) list(to *output.Table, heading, series string, write func(text []byte)) {
	if len(n.newest) == 0 {
		return
	}
	to.Line("")
	to.Line(heading)
	if n.left > 0 {
		to.Line(fmt.Sprintf("... %d earlier, see --series %s --json ...", n.left, series))
	}
	for _, e := range n.newest {
		write(e.Text)
	}
}

func (t *table) listWindows(to *output.Table) {
	previous := ""
	t.windows.list(to, "Windows", "window", func(text []byte) {
		var r explain.Report
		if json.Unmarshal(text, &r) != nil {
			return // of a later version
		}
		reports.ListRow(to, &r, "")
		if r.Finding != previous {
			to.Text("  ", r.Finding)
		}
		previous = r.Finding
	})
}

func (t *table) listEvents(to *output.Table) {
	t.events.list(to, "Events", "event", func(text []byte) {
		var event events.Shown
		if json.Unmarshal(text, &event) == nil {
			to.Text("", event.Words())
		}
	})
}
