package stat

import (
	"io"
	"sync"
	"time"

	"github.com/stallspan/stallspan/agent/internal/output"
	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/recording"
	"github.com/stallspan/stallspan/internal/sample"
)

// Devices summarizes the devices of a recording by the second, from the entries that pass it. It is safe for
// concurrent use.
type Devices struct {
	to monitor.Journal // nil for none

	mu     sync.Mutex
	run    *printer
	totals summary
	latest sample.Snapshot

	started bool            // before is set
	before  sample.Snapshot // the readings at the beginning of the interval
	due     time.Duration   // Stamp.Mono of its end
}

// NewDevices sums up what it passes on to another journal. That may be nil.
func NewDevices(to monitor.Journal) *Devices {
	d := &Devices{to: to}
	d.run = &printer{interval: time.Second, out: io.Discard, print: d.totals.print}
	return d
}

// Write is of monitor.Journal.
func (d *Devices) Write(e *recording.Entry) error {
	d.mu.Lock()
	switch {
	case e.Sample != nil && e.Edge == 0:
		d.latest.Learn(e.Sample)
	case e.Mark != nil && e.Mark.Op == recording.Tick:
		d.tick()
	}
	d.mu.Unlock()
	if d.to == nil {
		return nil
	}
	return d.to.Write(e)
}

// tick sums up an interval if it is complete.
func (d *Devices) tick() {
	at := d.latest.Disks.At
	if at.Mono == 0 {
		at = d.latest.Cores.At
	}
	switch {
	case at.Mono == 0:
	case !d.started:
		d.started, d.before, d.due = true, d.latest.Clone(), at.Mono+d.run.interval
	case at.Mono >= d.due:
		after := d.latest.Clone()
		late := at.Mono - d.due
		d.due += late - late%d.run.interval + d.run.interval // as the ticker of run does
		_, _ = d.run.show(&d.before, &after)                 // it writes nothing that could fail
		d.before = after
	}
}

// Print writes the table, and the problems below it.
func (d *Devices) Print(out io.Writer, problems []error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.totals.intervals == 0 && d.started { // less than a second
		_, _ = d.run.show(&d.before, &d.latest)
	}
	return output.WriteTable(out, func(t *output.Table) {
		t.Line("")
		d.totals.draw(t)
		for _, p := range problems {
			t.Text("Warning: ", p.Error())
		}
	})
}
