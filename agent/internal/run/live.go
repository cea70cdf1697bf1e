package run

import (
	"fmt"
	"os"
	"strings"
	"sync/atomic"

	"github.com/stallspan/stallspan/agent/internal/cli"
	"github.com/stallspan/stallspan/agent/internal/output"
	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/window"
)

// liveLines prints what happens while a program runs, on standard error, for a person at a terminal.
type liveLines struct {
	on      bool        // standard error is a terminal, and the user wants them
	midLine atomic.Bool // the program's output on the terminal does not end with a line feed
}

// passed gets all that the program prints on a terminal.
func (l *liveLines) passed(output []byte) {
	if n := len(output); n > 0 {
		l.midLine.Store(output[n-1] != '\n')
	}
}

func (l *liveLines) print(line string) {
	if !l.on {
		return
	}
	if l.midLine.Swap(false) { // a progress bar, or a prompt
		_, _ = os.Stderr.WriteString("\n")
	}
	cli.Say("%s", output.Printable(line))
}

// liveLine is a window in one line.
func liveLine(r *window.Report) string {
	row := explain.NewRow(r)
	line := fmt.Sprintf("%s: %s", strings.TrimSpace(row.Label), row.Duration)
	if r.Split {
		if len(r.GPUIDs) > 0 {
			line += fmt.Sprintf(", GPU %s, storage %s, CPU %s", row.Busy, row.Storage, row.CPU)
		} else {
			line += fmt.Sprintf(", on CPU %s, storage %s", row.CPU, row.Storage)
		}
		if row.Ready != "" {
			line += ", no core " + row.Ready
		}
	}
	return line + ", " + row.Verdict
}
