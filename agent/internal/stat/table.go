package stat

import (
	"bytes"
	"fmt"
	"os"
	"slices"

	"github.com/stallspan/stallspan/agent/internal/output"
)

// liveTable writes one block for each interval: a line for the machine, a row for each GPU, a row for each disk.
type liveTable struct {
	wide     bool // show everything
	units    byteUnits
	terminal *os.File // standard output
	fine     bool     // intervals are not of whole seconds

	begun  bool // a block was written
	marked bool // what the mark means was said
}

// print fits a block to the current width of the terminal. Other outputs get all columns.
func (t *liveTable) print(to *bytes.Buffer, r *Rates) error {
	screen := output.ScreenFor(t.terminal, output.Never)
	width := screen.Columns()
	if t.wide {
		width = 0
	}
	t.draw(to, r, width, screen.Terminal())
	return nil
}

// draw writes a block of at most width columns where possible; 0 is no limit. Remarks are for a terminal.
func (t *liveTable) draw(to *bytes.Buffer, r *Rates, width int, remarks bool) {
	first := !t.begun
	if !first {
		to.WriteByte('\n')
	}
	t.begun = true
	t.machine(to, r)
	if len(r.GPUs) > 0 {
		drawGPUs(to, r.GPUs, width)
	}
	if len(r.Disks) > 0 {
		if all := drawDisks(to, r.Disks, width, t.units); remarks && first && !all {
			to.WriteString("stallspan stat -x shows all columns\n")
		}
	}
	if remarks && !t.marked && slices.ContainsFunc(r.Disks, func(d Disk) bool { return !d.Leaf }) {
		t.marked = true
		to.WriteString("* part of other devices, or made of them: its work is also counted there\n")
	}
}

// machine writes the time, the I/O pressure and the busiest core.
func (t *liveTable) machine(to *bytes.Buffer, r *Rates) {
	layout := "2006-01-02 15:04:05"
	if t.fine {
		layout += ".000"
	}
	line := r.At.Wall.Format(layout)
	if p := r.Pressure; p != nil {
		line += fmt.Sprintf("  io some %.1f %% full %.1f %%", 100*p.Some, 100*p.Full)
	}
	if c := r.BusiestCore; c != nil {
		line += fmt.Sprintf("  busiest core %s %.0f %%", output.Printable(c.Name), 100*c.Utilization)
	}
	to.WriteString(line + "\n")
}
