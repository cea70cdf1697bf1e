//go:build overhead

package sample

import (
	"fmt"
	"os"
	"time"
)

// stepVariable is the time between two steps of the wall clock, for lab/footprint -soak. No process can step the clock
// of a machine for itself alone: a time namespace has only the monotonic clocks.
const stepVariable = "STALLSPAN_CLOCK_STEPS"

// offsets are what the wall clock is off by, in turn.
var offsets = [...]time.Duration{0, 90 * time.Second, -time.Hour, 26 * time.Hour, -200 * time.Millisecond}

func init() {
	text := os.Getenv(stepVariable)
	if text == "" {
		return
	}
	every, err := time.ParseDuration(text)
	if err != nil || every <= 0 {
		fmt.Fprintf(os.Stderr, "%s=%s is no duration\n", stepVariable, text)
		os.Exit(2)
	}
	wallOffset = func(mono time.Duration) time.Duration { return offsets[int(mono/every)%len(offsets)] }
}
