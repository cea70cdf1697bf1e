package output

import (
	"fmt"
	"io"
)

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
