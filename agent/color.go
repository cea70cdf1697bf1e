package agent

import (
	"io"

	"github.com/stallspan/stallspan/agent/internal/console"
)

const colorFlag = "color"

// colors is the setting --color. Main sets it before a command begins.
var colors = console.Auto

// screenOf is what an output can show.
func screenOf(out io.Writer) console.Screen { return console.Of(out, colors) }

// colorValue is the value of --color.
type colorValue struct{ when console.When }

// String is of pflag.Value.
func (v *colorValue) String() string {
	if v.when == "" {
		return string(console.Auto)
	}
	return string(v.when)
}

// Set is of pflag.Value.
func (v *colorValue) Set(text string) (err error) {
	v.when, err = console.ParseWhen(text)
	return err
}

// Type is of pflag.Value.
func (v *colorValue) Type() string { return "when" }
