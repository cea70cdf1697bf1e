package top

import (
	"slices"

	"github.com/gdamore/tcell/v3"

	"github.com/stallspan/stallspan/agent/internal/output"
)

// column is one of a table. Its cells are texts, or are drawn.
type column struct {
	title string
	group string // above the title
	width int    // at least
	grow  int    // at most, where there is room
	level int    // columns of higher levels are left out first; 0 is always there
	left  bool   // text begins at the left
	cell  func(row int) (string, tcell.Style)
	draw  func(c *canvas, x, y, width, row int)
	x     int // where it begins, as arrange has it
}

// write writes a text into the column.
func (f *column) write(c *canvas, y int, text string, style tcell.Style) {
	x := f.x
	if !f.left && f.draw == nil {
		x += max(0, f.width-output.Columns(text))
	}
	c.put(x, y, f.width, text, style)
}

// arrange returns the columns that fit, with their widths and places.
func arrange(all []column, width int) []column {
	fitting, used := output.FitColumns(all, width+1, func(c *column) (int, int) { return c.level, c.width + 1 })
	room := width + 1 - used
	for grown := true; room > 0 && grown; {
		grown = false
		for i := range fitting {
			if at := &fitting[i]; room > 0 && at.width < at.grow {
				at.width++
				room--
				grown = true
			}
		}
	}
	for i := 1; i < len(fitting); i++ {
		fitting[i].x = fitting[i-1].x + fitting[i-1].width + 1
	}
	return fitting
}

// table is a list with a heading.
type table struct {
	columns  []column
	rows     int
	empty    string // in place of rows
	first    int    // of the rows that are shown
	selected int    // -1 for none
	more     string // what the rows that do not fit are
}

// groups reports whether the columns that fit have groups.
func groups(fitting []column) bool {
	return slices.ContainsFunc(fitting, func(c column) bool { return c.group != "" })
}

// height returns the lines that a table would take.
func (t *table) height(width int) int {
	lines := 1 + max(1, t.rows)
	if groups(arrange(t.columns, width)) {
		lines++
	}
	return lines
}

// draw writes a table into so many lines from y on.
func (t *table) draw(c *canvas, y, lines int) {
	fitting := arrange(t.columns, c.width)
	end := y + lines
	if groups(fitting) && lines >= 3 {
		t.groups(c, y, fitting)
		y++
	}
	c.fill(y, heading)
	for i := range fitting {
		fitting[i].write(c, y, fitting[i].title, heading)
	}
	y++
	if t.rows == 0 {
		for _, line := range output.WrapText(t.empty, c.width-2) {
			if y < end {
				c.put(1, y, c.width, line, faint)
			}
			y++
		}
		return
	}
	for row := t.first; row < t.rows && y < end; row++ {
		if left := t.rows - row; y == end-1 && left > 1 && row > t.first {
			c.put(1, y, c.width, plural(left, t.more), faint)
			return
		}
		t.row(c, y, row, fitting)
		y++
	}
}

func (t *table) row(c *canvas, y, row int, fitting []column) {
	for i := range fitting {
		f := &fitting[i]
		if f.draw != nil {
			f.draw(c, f.x, y, f.width, row)
			continue
		}
		text, style := f.cell(row)
		if f.left {
			text = output.Fit(text, f.width)
		}
		f.write(c, y, text, style)
	}
	if row == t.selected {
		for i := y * c.width; i < (y+1)*c.width; i++ { // its colours stay
			c.cells[i].style = c.cells[i].style.Reverse(true)
		}
	}
}

// groups writes what several columns have in common, above them.
func (t *table) groups(c *canvas, y int, fitting []column) {
	c.fill(y, heading)
	group := ""
	for i := range fitting {
		f := &fitting[i]
		if f.group != group && f.group != "" {
			c.put(f.x, y, c.width-f.x, f.group, heading)
		}
		group = f.group
	}
}
