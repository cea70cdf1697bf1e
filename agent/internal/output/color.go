package output

import (
	"io"
)

const ColorFlag = "color"

// Colors is the setting --color. Main sets it before a command begins.
var Colors = Auto

// ScreenOf is what an output can show.
func ScreenOf(out io.Writer) Screen { return ScreenFor(out, Colors) }

// ColorValue is the value of --color.
type ColorValue struct{ when When }

// String is of pflag.Value.
func (v *ColorValue) String() string {
	if v.when == "" {
		return string(Auto)
	}
	return string(v.when)
}

// Set is of pflag.Value.
func (v *ColorValue) Set(text string) (err error) {
	v.when, err = ParseWhen(text)
	return err
}

// Type is of pflag.Value.
func (v *ColorValue) Type() string { return "when" }
