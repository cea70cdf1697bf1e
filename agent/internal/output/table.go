package output

import (
	"fmt"
	"io"
	"strings"
)

// Tables fit 80 columns, the width of a file. The longest verdict, "storage_bound SLOW", ends in the last one.
const (
	TableWidth = 80
	LabelWidth = 15
	MaxRows    = 40 // a longer table of windows shows its first and last rows, and the slow ones between them
)

// Table writes lines for a person.
type Table struct {
	Out    io.Writer
	Screen Screen
}

// NewTable is a table that knows what its output can show.
func NewTable(out io.Writer) *Table { return &Table{Out: out, Screen: ScreenOf(out)} }

// Cell is a part of a line, with its colour.
type Cell struct {
	Text  string
	Color Color
}

// Line writes one line, however long it is.
func (t *Table) Line(s string) { t.Cells(Cell{Text: strings.TrimRight(Printable(s), " ")}) }

// Cells writes one line of cells.
func (t *Table) Cells(cells ...Cell) {
	var line strings.Builder
	for _, c := range cells {
		line.WriteString(t.Screen.Paint(c.Color, Printable(c.Text)))
	}
	// a table on standard error that fails has no other way out
	_, _ = fmt.Fprintln(t.Out, line.String())
}

// Text writes a sentence in lines of the table's width, and nothing for an empty one. They are indented like the first.
func (t *Table) Text(start, sentence string) { t.Colored(Plain, start, sentence) }

// Colored is text with the start in a colour.
func (t *Table) Colored(color Color, start, sentence string) {
	for i, line := range WrapText(Printable(sentence), t.Screen.Width()-Columns(start)) {
		if i > 0 {
			start = strings.Repeat(" ", Columns(start))
			color = Plain
		}
		t.Cells(Cell{start, color}, Cell{Text: line})
	}
}

// FitColumns returns the columns that fit into a width, and the width of these. Where not all fit, those of the highest
// rank are left out first; those of rank 0 stay.
func FitColumns[T any](all []T, width int, of func(*T) (rank, width int)) (fitting []T, used int) {
	highest := 0
	for i := range all {
		rank, _ := of(&all[i])
		highest = max(highest, rank)
	}
	for rank := highest; ; rank-- {
		fitting, used = nil, 0
		for i := range all {
			if r, w := of(&all[i]); r <= rank {
				fitting, used = append(fitting, all[i]), used+w
			}
		}
		if used <= width || rank == 0 {
			return fitting, used
		}
	}
}
