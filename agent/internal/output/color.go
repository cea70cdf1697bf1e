package output

import (
	"io"

	"github.com/stallspan/stallspan/agent/internal/console"
)

const ColorFlag = "color"

// Colors is the setting --color. Main sets it before a command begins.
var Colors = console.Auto

// ScreenOf is what an output can show.
func ScreenOf(out io.Writer) console.Screen { return console.Of(out, Colors) }

// ColorValue is the value of --color.
type ColorValue struct{ when console.When }

// String is of pflag.Value.
func (v *ColorValue) String() string {
	if v.when == "" {
		return string(console.Auto)
	}
	return string(v.when)
}

// Set is of pflag.Value.
func (v *ColorValue) Set(text string) (err error) {
	v.when, err = console.ParseWhen(text)
	return err
}

// Type is of pflag.Value.
func (v *ColorValue) Type() string { return "when" }
