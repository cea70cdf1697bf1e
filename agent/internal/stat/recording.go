package stat

import (
	"io"
	"sync"
	"time"

	"github.com/stallspan/stallspan/agent/internal/output"
	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/recording"
)

// Devices summarizes the devices of a recording by the second, from the entries that pass it. It is safe for
// concurrent use.
type Devices struct {
	to monitor.Journal // nil for none

	mu     sync.Mutex
	replay recordedMachine
	totals summary
}

// NewDevices sums up what it passes on to another journal. That may be nil.
func NewDevices(to monitor.Journal) *Devices {
	d := &Devices{to: to}
	d.replay.run = &printer{interval: time.Second, out: io.Discard, print: d.totals.print}
	return d
}

// Write is of monitor.Journal.
func (d *Devices) Write(e *recording.Entry) error {
	d.mu.Lock()
	_, _ = d.replay.take(e) // it writes nothing that could fail
	d.mu.Unlock()
	if d.to == nil {
		return nil
	}
	return d.to.Write(e)
}

// Print writes the table, and the problems below it.
func (d *Devices) Print(out io.Writer, problems []error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.totals.intervals == 0 && d.replay.started { // less than a second
		_, _ = d.replay.run.show(&d.replay.before, &d.replay.latest)
	}
	return output.WriteTable(out, func(t *output.Table) {
		t.Line("")
		d.totals.draw(t)
		for _, p := range problems {
			t.Text("Warning: ", p.Error())
		}
	})
}
