package agent

import (
	"bytes"
	"fmt"
	"os"
	"slices"

	"golang.org/x/term"

	"github.com/stallspan/stallspan/agent/internal/stat"
)

// plainTerminal is how many columns a terminal has that does not say so.
const plainTerminal = 80

// statTable writes a block an interval: a line for the machine, a row a GPU, a row a disk.
type statTable struct {
	wide     bool     // show everything
	terminal *os.File // standard output
	fine     bool     // intervals are not of whole seconds

	begun  bool // a block was written
	marked bool // what the mark means was said
}

// print fits a block to the terminal, whose width may have changed. What is no terminal has room for everything.
func (t *statTable) print(to *bytes.Buffer, r *stat.Rates) error {
	fd := int(t.terminal.Fd())
	if !term.IsTerminal(fd) {
		t.draw(to, r, 0, false)
		return nil
	}
	width, _, err := term.GetSize(fd)
	if err != nil || width <= 0 {
		width = plainTerminal
	}
	if t.wide {
		width = 0
	}
	t.draw(to, r, width, true)
	return nil
}

// draw writes a block that is at most width columns wide where that can be; 0 has room for everything. Remarks are for
// a person who watches.
func (t *statTable) draw(to *bytes.Buffer, r *stat.Rates, width int, remarks bool) {
	if t.begun {
		to.WriteByte('\n')
	} else if remarks && len(r.GPUs) == 0 {
		to.WriteString("No NVIDIA GPU is seen: disks alone.\n\n")
	}
	t.begun = true
	t.machine(to, r)
	if len(r.GPUs) > 0 {
		drawGPUs(to, r.GPUs, width)
	}
	if len(r.Disks) > 0 {
		drawDisks(to, r.Disks, width)
	}
	if remarks && !t.marked && slices.ContainsFunc(r.Disks, func(d stat.Disk) bool { return !d.Leaf }) {
		t.marked = true
		to.WriteString("* a part of other devices or made of them: what it does counts there too\n")
	}
}

// machine writes the time, the I/O pressure and the busiest core.
func (t *statTable) machine(to *bytes.Buffer, r *stat.Rates) {
	layout := "2006-01-02 15:04:05"
	if t.fine {
		layout += ".000"
	}
	line := r.At.Wall.Format(layout)
	if p := r.Pressure; p != nil {
		line += fmt.Sprintf("  io some %.1f %% full %.1f %%", 100*p.Some, 100*p.Full)
	}
	if c := r.BusiestCore; c != nil {
		line += fmt.Sprintf("  busiest core %s %.0f %%", printable(c.Name), 100*c.Utilization)
	}
	to.WriteString(line + "\n")
}
