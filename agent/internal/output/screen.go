package output

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/term"
)

const (
	plainWidth = 80 // columns of a file, and of a terminal that does not report its width
	minWidth   = 60
	maxWidth   = 250
)

// Screen is what an output can show. The zero value is a file.
type Screen struct {
	columns int // of a terminal; 0 for other outputs
	colors  bool
}

// ScreenFor returns what an output can show now.
func ScreenFor(out io.Writer, when When) Screen {
	s := Screen{colors: when == Always}
	file, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return s
	}
	s.columns = plainWidth
	if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 0 {
		s.columns = width
	}
	// https://no-color.org
	s.colors = s.colors || when != Never && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	return s
}

// Terminal reports whether a person sees the output at once.
func (s Screen) Terminal() bool { return s.columns > 0 }

// Columns is the width of the terminal, or 0 for other outputs.
func (s Screen) Columns() int { return s.columns }

// Width is the width for lines of text, from 60 to 250 columns.
func (s Screen) Width() int {
	if s.columns == 0 {
		return plainWidth
	}
	return min(max(s.columns, minWidth), maxWidth)
}

// Color is the number of a colour in ECMA-48, or 0 for the terminal's own.
type Color int

// The colours, by what they say.
const (
	Plain Color = 0
	Bad   Color = 31 // red: slow, failed, missing
	Good  Color = 32 // green
	Warn  Color = 33 // yellow: degraded, partial
	Stall Color = 36 // cyan: a verdict that names a cause
)

// Palette is the colour's number among the terminal's 16.
func (c Color) Palette() int { return int(c) - 30 }

// Paint colours a text without escape sequences, if colours are wanted.
func (s Screen) Paint(c Color, text string) string {
	if !s.colors || c == Plain || text == "" {
		return text
	}
	return fmt.Sprintf("\x1b[%dm%s\x1b[0m", c, text)
}

// ColorFlag is the name of the flag whose value is Colors.
const ColorFlag = "color"

// Colors is the setting --color.
var Colors = Auto

// ScreenOf is what an output can show.
func ScreenOf(out io.Writer) Screen { return ScreenFor(out, Colors) }

// When is the setting --color, and its pflag.Value.
type When string

// The settings.
const (
	Auto   When = "auto" // on a terminal, unless NO_COLOR is set or TERM is dumb
	Always When = "always"
	Never  When = "never"
)

// String is of pflag.Value.
func (w *When) String() string { return string(*w) }

// Set is of pflag.Value.
func (w *When) Set(text string) error {
	switch value := When(text); value {
	case Auto, Always, Never:
		*w = value
		return nil
	}
	return fmt.Errorf("give %s, %s or %s", Auto, Always, Never)
}

// Type is of pflag.Value.
func (w *When) Type() string { return "when" }
