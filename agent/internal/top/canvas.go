package top

import (
	"slices"
	"unicode"

	"github.com/gdamore/tcell/v3"

	"github.com/stallspan/stallspan/agent/internal/output"
)

// cell is one column of one line.
type cell struct {
	char  rune // 0 behind a character of two columns
	style tcell.Style
}

// canvas is a screen in memory.
type canvas struct {
	width, height int
	ascii         bool // only characters of ASCII
	cells         []cell
}

// newCanvas returns an empty canvas.
func newCanvas(width, height int, ascii bool) *canvas {
	return &canvas{width: width, height: height, ascii: ascii,
		cells: slices.Repeat([]cell{{' ', tcell.StyleDefault}}, width*height)}
}

// printable replaces what would move a terminal's cursor, change its colours or have no width of its own: names come
// from other programs.
func printable(r rune, ascii bool) rune {
	if !unicode.IsGraphic(r) || ascii && r > unicode.MaxASCII || output.Columns(string(r)) == 0 {
		return '?'
	}
	return r
}

// put writes a text into at most width columns, and returns the columns that it took.
func (c *canvas) put(x, y, width int, text string, style tcell.Style) int {
	if y < 0 || y >= c.height {
		return 0
	}
	end := min(x+width, c.width)
	from := x
	for _, r := range text {
		w := 1
		if r < ' ' || r > '~' {
			r = printable(r, c.ascii)
			w = output.Columns(string(r))
		}
		if x+w > end {
			break
		}
		c.cells[y*c.width+x] = cell{r, style}
		if w == 2 {
			c.cells[y*c.width+x+1] = cell{0, style}
		}
		x += w
	}
	return x - from
}

// set writes a character of one column.
func (c *canvas) set(x, y int, r rune, style tcell.Style) {
	if x >= 0 && x < c.width && y >= 0 && y < c.height {
		c.cells[y*c.width+x] = cell{r, style}
	}
}

// fill styles a whole line, with its text.
func (c *canvas) fill(y int, style tcell.Style) {
	for x := range c.width {
		c.cells[y*c.width+x].style = style
	}
}

// Glyphs of ledgers and histories.
var (
	bars      = [...]rune{'█', '▓', '▒', '░'} // busy, storage, CPU, other
	asciiBars = [...]rune{'#', 'S', 'C', '.'}
	levels    = []rune(" ▁▂▃▄▅▆▇█")
	plain     = []rune(" .:-=+*#@")
)

// level is the glyph of a share from 0 to 1. What is not nothing is visible.
func (c *canvas) level(share float64) rune {
	set := levels
	if c.ascii {
		set = plain
	}
	if !(share > 0) {
		return set[0]
	}
	return set[min(len(set)-1, 1+int(share*float64(len(set)-1)))]
}

func (c *canvas) bar(part int) rune {
	if c.ascii {
		return asciiBars[part]
	}
	return bars[part]
}

// stack draws the parts of a ledger over width columns, so that rounding never adds a column.
func (c *canvas) stack(x, y, width int, parts [4]float64) {
	sum, at := 0.0, 0
	for i, share := range parts {
		sum += share
		end := min(width, int(sum*float64(width)+0.5))
		for ; at < end; at++ {
			c.set(x+at, y, c.bar(i), partStyles[i])
		}
	}
}

// spark draws shares from 0 to 1, the newest at the right.
func (c *canvas) spark(x, y, width int, shares []float64, style tcell.Style) {
	shares = shares[max(0, len(shares)-width):]
	x += width - len(shares)
	for i, share := range shares {
		c.set(x+i, y, c.level(share), style)
	}
}

// colored is the style of a colour of the other commands.
func colored(c output.Color) tcell.Style {
	return tcell.StyleDefault.Foreground(tcell.PaletteColor(c.Palette()))
}

// Styles. Meaning is never in the colour alone.
var (
	normal     = tcell.StyleDefault
	strong     = normal.Bold(true)
	faint      = normal.Dim(true)
	heading    = normal.Reverse(true)
	green      = colored(output.Good)
	yellow     = colored(output.Warn)
	red        = colored(output.Bad)
	partStyles = [4]tcell.Style{green, red, yellow, faint}
)
