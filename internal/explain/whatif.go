package explain

import (
	"fmt"
	"math"

	"github.com/stallspan/stallspan/internal/window"
)

// Limits of the answers of a replay.
const (
	minHelp    = 1.1 // speed-up from which a change is worth advice, in the digits that are shown
	maxFaster  = 100 // a range up to there has no upper end
	nearlySame = 0.8 // share of another change's gain from which a simpler one comes first
	wideRange  = 3.0 // factor from the low end of a range to the high one from which only the low one is said
)

// Answer is how much faster a window would be with one change.
type Answer struct {
	Change string // "twice the workers"
	Faster string // "2.7x (2.5 to 2.9)"
}

// Answers returns what a replay of the window's schedule predicts; nil if there was none.
func Answers(r *window.Report) []Answer {
	w := r.WhatIf
	if w == nil {
		return nil
	}
	var all []Answer
	add := func(change string, faster float64, text string) {
		if faster > 0 {
			all = append(all, Answer{change, text})
		}
	}
	add("storage without waiting", w.NoStorage, timesFrom(w.NoStorage, w.Low, w.High))
	add("data from the network at once", w.NoNetwork, timesFrom(w.NoNetwork, w.NetworkLow, w.NetworkHigh))
	if faster := withRequests(w); faster != "" {
		all = append(all, Answer{"eight times the requests at once", faster})
	}
	addServed := func(change string, faster float64) {
		if helps(faster) {
			add(change, faster, times(faster)+ifServed)
		} else {
			add(change, faster, times(faster))
		}
	}
	addServed("twice the workers", w.Workers)
	addServed("two workers, now none", w.TwoWorkers)
	if len(r.GPUIDs) > 0 {
		add("a GPU twice as fast", w.GPU, times(w.GPU))
	}
	return all
}

// withRequests is the range with eight times as many requests at once, as "2.0x to 3.5x"; "" if it is unknown.
func withRequests(w *window.WhatIf) string {
	if w == nil || w.RequestsLow <= 0 || w.RequestsHigh >= maxFaster {
		return ""
	}
	return times(w.RequestsLow) + " to " + times(w.RequestsHigh)
}

// ifServed is what a replay of more workers does not know.
const ifServed = ", if the disk can serve them"

// Faster says how much faster something would be: "about 2.7x faster (2.5 to 2.9)". Of a wide range it says only the
// low end. high is 0 if only low is known; low is 0 if nothing is.
func Faster(likely, low, high float64) string {
	switch {
	case !isWide(likely, low, high):
		return "about " + times(likely) + " faster" + speedupRange(low, high)
	case helps(low):
		return "at least " + times(low) + " faster"
	case high > 0 && high < maxFaster:
		return "up to " + times(high) + " faster"
	}
	return "how much faster is not known"
}

// timesFrom is the same without words, for a table.
func timesFrom(likely, low, high float64) string {
	if isWide(likely, low, high) {
		return "at least " + times(low)
	}
	return times(likely) + speedupRange(low, high)
}

func isWide(likely, low, high float64) bool {
	return low > 0 && (high >= maxFaster || max(likely, high) > wideRange*low)
}

// speedupRange is " (2.5 to 2.9)"; "" if it is unknown, or smaller than a digit.
func speedupRange(low, high float64) string {
	switch {
	case low <= 0, high > 0 && times(low) == times(high):
		return ""
	case high <= 0:
		return " (at least " + times(low) + ")"
	}
	return fmt.Sprintf(" (%.1f to %.1f)", low, high)
}

// times formats a speed-up.
func times(faster float64) string { return fmt.Sprintf("%.1fx", faster) }

// helps reports whether a change is worth advice.
func helps(faster float64) bool { return math.Round(10*faster) >= 10*minHelp }

// twiceWorkers is what a replay with twice the workers predicts; 0 if unknown.
func twiceWorkers(r *window.Report) float64 {
	if r.WhatIf == nil {
		return 0
	}
	return r.WhatIf.Workers
}

// twiceGPU is what a replay with a GPU twice as fast predicts; 0 if unknown.
func twiceGPU(r *window.Report) float64 {
	if r.WhatIf == nil || len(r.GPUIDs) == 0 {
		return 0
	}
	return r.WhatIf.GPU
}
