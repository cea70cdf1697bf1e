package window

import (
	"fmt"
	"strings"

	"github.com/stallspan/stallspan/internal/history"
)

// causes are why a GPU throttled where that costs speed. The voltage's limit is not among them: at its highest clocks a GPU
// is always there.
var causes = []struct {
	detail history.Detail
	words  string
	remedy string
}{
	{history.ThrottledThermal, "because it was too hot", cool},
	{history.ThrottledHWThermal, "because it was too hot for its own protection", cool},
	{history.ThrottledPowerBrake, "because the machine's power supply asked for it",
		"Look at the machine's power supplies and at the power budget of its rack."},
	{history.ThrottledSyncBoost, "because another GPU of its group was slower",
		"Look at the others of its group: the slowest one sets the pace."},
	{history.ThrottledBoard, "because its board was at its limit", "Look at the machine's power supplies and their cables."},
	{history.ThrottledPower, "to stay below its power cap", "Raise the cap where the board may draw more (nvidia-smi -q -d POWER); otherwise this is the GPU's speed."},
}

const cool = "Look at its cooling: fans, airflow, dust, and what is hot beside it."

// throttled tells of the GPU and the cause with the largest share of the window.
func (r *Report) throttled() bool {
	var worst *GPUUse
	var why int
	var most float64
	for i := range r.Uses {
		for c := range causes {
			share, told := r.Uses[i].Means.Get(causes[c].detail)
			if told && share > most && r.Uses[i].slowed(causes[c].detail, share) {
				worst, why, most = &r.Uses[i], c, share
			}
		}
	}
	if worst == nil {
		return false
	}
	text := fmt.Sprintf("%s held its clocks down for %s of the time %s", r.called(worst), percent(most), causes[why].words)
	r.find(Throttled, text+worst.against(causes[why].detail)+".", causes[why].remedy)
	return true
}

// slowed says that a cause held for so long that it cost speed.
func (u *GPUUse) slowed(d history.Detail, share float64) bool {
	t := &FindingThresholds
	if d != history.ThrottledPower {
		return share >= t.Throttled
	}
	clock, told := u.Means.Get(history.SMClock)
	if !told || u.Limits.Clock == 0 {
		return share >= t.PowerBlind
	}
	return share >= t.PowerCap && clock <= t.PowerClock*u.Limits.Clock
}

// against holds temperature or power against its limit.
func (u *GPUUse) against(d history.Detail) string {
	text := ""
	temperature, hot := u.Means.Get(history.Temperature)
	clock, ticks := u.Means.Get(history.SMClock)
	switch d {
	case history.ThrottledThermal, history.ThrottledHWThermal:
		if hot {
			text = fmt.Sprintf(": %.0f C in the mean", temperature)
		}
		if hot && u.Limits.SlowdownAt > 0 {
			text += fmt.Sprintf(", and it slows down at %.0f C", u.Limits.SlowdownAt)
		}
	case history.ThrottledPower:
		if u.Limits.Power > 0 {
			text = fmt.Sprintf(" of %.0f W", u.Limits.Power)
		}
		if ticks && u.Limits.Clock > 0 {
			text += fmt.Sprintf(": its SMs ran at %.0f MHz in the mean, and have run at %.0f MHz", clock/1e6, u.Limits.Clock/1e6)
		}
	}
	return text
}

// called is how a sentence about one GPU begins.
func (r *Report) called(u *GPUUse) string {
	if len(r.GPUIDs) == 1 {
		return "The GPU"
	}
	if strings.HasPrefix(u.ID, "MIG-") {
		return u.ID
	}
	return fmt.Sprintf("GPU %d", u.Limits.Index)
}
