package reports

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stallspan/stallspan/agent/internal/output"
	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/progress"
	"github.com/stallspan/stallspan/internal/window"
)

// Summary is what a run's table ends with. Times are those of the program.
type Summary struct {
	whole    *window.Report   // nil if it is unknown
	epochs   []*window.Report // in their order
	slow     int              // epochs that were slow
	before   time.Duration    // until the first epoch
	between  time.Duration    // epochs, all pauses together: validation, checkpoints
	after    time.Duration    // the last epoch
	NoEpochs *progress.Hint   // nil if there were epochs, or the windows were announced
}

// NewSummary sums up windows in the order in which they began.
func NewSummary(whole *window.Report, windows []*window.Report) *Summary {
	s := &Summary{whole: whole}
	var last time.Duration
	for _, r := range windows {
		if r.Kind != window.Epoch {
			continue
		}
		if s.epochs = append(s.epochs, r); len(s.epochs) > 1 && r.Start.Mono > last {
			s.between += r.Start.Mono - last
		}
		if last = max(last, r.End.Mono); r.Slow {
			s.slow++
		}
	}
	if whole != nil && len(s.epochs) > 0 {
		s.before = max(0, s.epochs[0].Start.Mono-whole.Start.Mono)
		s.after = max(0, whole.End.Mono-last)
	}
	return s
}

// Write writes the lines below the table.
func (s *Summary) Write(t *output.Table) {
	if s.whole != nil && len(s.epochs) > 0 {
		row := explain.NewRow(s.whole)
		t.Text("Run: ", s.times()+". "+s.ledger(row)+".")
	}
	if len(s.epochs) > 2 { // the table has both of two
		t.Text("Epochs: ", s.durations())
	}
	if h := s.NoEpochs; h != nil {
		t.Text("No epochs: ", noEpochs(h))
	}
}

func (s *Summary) times() string {
	text := fmt.Sprintf("%s, %s before the first epoch", explain.Duration(s.whole.Duration().Seconds()),
		explain.Duration(s.before.Seconds()))
	if len(s.epochs) > 1 {
		text += fmt.Sprintf(", %s between epochs", explain.Duration(s.between.Seconds()))
	}
	return text + fmt.Sprintf(", %s after the last", explain.Duration(s.after.Seconds()))
}

func (s *Summary) ledger(row explain.Row) string {
	noCore := ""
	if row.Ready != "" {
		noCore = "no core " + row.Ready + ", "
	}
	if len(s.whole.GPUIDs) > 0 {
		return fmt.Sprintf("All of it: GPU busy %s, storage %s, CPU %s, %sother %s", row.Busy, row.Storage, row.CPU, noCore,
			row.Other)
	}
	return fmt.Sprintf("All of it: on CPU %s, storage %s, %sother %s", row.CPU, row.Storage, noCore, row.Other)
}

func (s *Summary) durations() string {
	lengths := make([]time.Duration, 0, len(s.epochs))
	for _, r := range s.epochs {
		lengths = append(lengths, r.Duration())
	}
	slices.Sort(lengths)
	text := func(length time.Duration) string { return explain.Duration(length.Seconds()) }
	most := len(lengths) - 1
	median := (lengths[most/2] + lengths[len(lengths)/2]) / 2 // the same one of an odd number
	p95 := lengths[int(0.95*float64(most)+0.5)]
	return fmt.Sprintf("%d, median %s, p95 %s, longest %s; %d slow.", len(lengths), text(median), text(p95),
		text(lengths[most]), s.slow)
}

func noEpochs(h *progress.Hint) string {
	text := fmt.Sprintf("none of the program's %d lines of output marks one. ", h.Lines)
	switch h.Lines {
	case 0:
		return "the program printed nothing. If it has epochs, let it print a line at the begin of each, or announce them" +
			" (see stallspan docs epochs)."
	case 1:
		text = "the program's only line of output marks none. "
	}
	if h.Pattern == "" {
		return text + "If it has epochs, give --epoch-pattern (see stallspan docs epochs)."
	}
	quoted := "'" + strings.ReplaceAll(h.Pattern, "'", `'\''`) + "'" // as a shell reads it
	option := "--epoch-pattern"
	if h.Ends {
		option = "--epoch-end-pattern"
	}
	kind := "looks like a counter"
	if h.Bar {
		kind = "is a bar that begins again"
	}
	return text + fmt.Sprintf("%q %s: try %s %s", h.Example, kind, option, quoted)
}
