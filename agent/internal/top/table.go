package top

import (
	"github.com/gdamore/tcell/v3"
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
}

// arrange returns the columns that fit, with their widths.
func arrange(all []column, width int) []column {
	total := func(level int) (sum, count int) {
		for i := range all {
			if all[i].level <= level {
				sum += all[i].width + 1
				count++
			}
		}
		return sum - 1, count
	}
	level := 0
	for next := 1; next <= highestLevel; next++ {
		if sum, _ := total(next); sum > width {
			break
		}
		level = next
	}
	var fitting []column
	for i := range all {
		if all[i].level <= level {
			fitting = append(fitting, all[i])
		}
	}
	sum, _ := total(level)
	for room := width - sum; room > 0; {
		grown := false
		for i := range fitting {
			if at := &fitting[i]; room > 0 && at.width < at.grow {
				at.width++
				room--
				grown = true
			}
		}
		if !grown {
			break
		}
	}
	return fitting
}

const highestLevel = 9

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
	for i := range fitting {
		if fitting[i].group != "" {
			return true
		}
	}
	return false
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
	x := 0
	for i := range fitting {
		f := &fitting[i]
		at := x
		if !f.left && f.draw == nil {
			at += max(0, f.width-columnsOf(f.title))
		}
		c.put(at, y, f.width, f.title, heading)
		x += f.width + 1
	}
	y++
	if t.rows == 0 {
		for _, line := range wrap(t.empty, c.width-2) {
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
	x := 0
	for i := range fitting {
		f := &fitting[i]
		switch {
		case f.draw != nil:
			f.draw(c, x, y, f.width, row)
		default:
			text, style := f.cell(row)
			if f.left {
				text = shorten(text, f.width)
			} else {
				text = terminal.FillLeft(text, f.width)
			}
			c.put(x, y, f.width, text, style)
		}
		x += f.width + 1
	}
	if row == t.selected {
		c.shade(y)
	}
}

// groups writes what several columns have in common, above them.
func (t *table) groups(c *canvas, y int, fitting []column) {
	c.fill(y, heading)
	x, group := 0, ""
	for i := range fitting {
		f := &fitting[i]
		if f.group != group && f.group != "" {
			c.put(x, y, c.width-x, f.group, heading)
		}
		group = f.group
		x += f.width + 1
	}
}
