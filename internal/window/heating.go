package window

import (
	"fmt"

	"github.com/stallspan/stallspan/internal/history"
)

// heating compares the first quarter of the window with the last one. It is for what the counters of throttling do not tell,
// or not yet; so only what is near its limit counts, for every GPU warms up when its work begins.
func (r *Report) heating(h *history.History, u *GPUUse) bool {
	t := &FindingThresholds
	quarter := r.Duration() / 4
	first := partOf(h, u.ID, r.Start.Mono, r.Start.Mono+quarter)
	last := partOf(h, u.ID, r.End.Mono-quarter, r.End.Mono)
	cold, okCold := first.means.Get(history.Temperature)
	hot, okHot := last.means.Get(history.Temperature)
	low, okLow := first.means.Get(history.Power)
	high, okHigh := last.means.Get(history.Power)
	if !okCold || !okHot || !okLow || !okHigh {
		return false
	}
	from := t.HeatingFrom
	if u.Limits.SlowdownAt > 0 {
		from = u.Limits.SlowdownAt - t.HeatingMargin
	}
	before, after := work(&first, &last)
	if hot < from || hot-cold < t.HeatingDegree || high < low*(1+t.HeatingPower) || before <= 0 || after > before*(1+t.HeatingWork) {
		return false
	}
	text := fmt.Sprintf("%s went from %.0f to %.0f C and from %.0f to %.0f W, and did no more for it", r.called(u), cold, hot, low, high)
	if u.Limits.SlowdownAt > 0 {
		text += fmt.Sprintf("; it slows down at %.0f C", u.Limits.SlowdownAt)
	}
	r.find(Heating, text+".", cool)
	return true
}

// work is what a GPU did in two parts of a window, by what both tell: the activity of its SMs, or lacking that how busy it
// was, at the speed of their clock.
func work(a, b *part) (before, after float64) {
	before, after = a.busy, b.busy
	for _, d := range []history.Detail{history.SMActive, history.SMClock} {
		x, okX := a.means.Get(d)
		y, okY := b.means.Get(d)
		switch {
		case !okX || !okY:
		case d == history.SMActive:
			before, after = x, y
		default:
			before, after = before*x, after*y
		}
	}
	return before, after
}
