package gpu

import (
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// mostDebt is how much busy time that was told late is made up for. The driver may tell of a time whose rows are gone
// already, without it: later rows then grow faster than the GPU worked, though never faster than time, until the sum is
// right again. More than this is left out, for it would hide that the GPU is idle now.
const mostDebt = time.Second

// card is one GPU and everything that was learned of it.
type card struct {
	device *asked     // nil while it is lost
	facts  sample.GPU // what does not change
	status sample.GPUStatus
	waits  bool          // hung only because no thread is left to ask it
	cut    bool          // into MIG slices
	due    time.Duration // Stamp.Mono of its next reading

	busy    integral
	given   time.Duration // Busy of the newest row
	offset  time.Duration // from the integral to Busy
	settled bool          // offset holds: false until the first reading, and after a time in which it could not be read

	domain domain
	since  uint64        // newest timestamp of the driver that was believed
	newest time.Duration // up to which its utilisation is known; 0 for not at all
	blind  bool          // the newest reading told nothing of utilisation that can be believed
	polled bool          // the driver keeps no buffer for it: its rate is asked for often

	gauges  sample.GPU
	gaugeAt time.Duration // when gauges were read; 0 for never
	before  float64       // the energy of the reading before the newest
	energy  time.Duration // when that was read; 0 for never

	xids []sample.XID // never changed once given
}

// works says that the GPU can be asked.
func (c *card) works() bool { return c.device != nil && c.status == sample.GPUWorks }

// learn takes over what a reading says. lastRow is when the newest row was. It gives how many values were garbage.
func (c *card) learn(r *reading, lastRow time.Duration) (garbage int) {
	if r.lacks[askSamples] && r.lacks[askRate] {
		c.facts.Has |= sample.LacksBusy
	}
	known := c.newest
	garbage = c.learnPoints(r)
	if r.hasRate {
		// The buffer is preferred where it says anything, but it says nothing while some GPUs idle.
		c.polled = r.lacks[askSamples] || r.rate > 0
		if !c.value(r.clocks.at.Mono, r.rate) {
			garbage++
		}
	} else {
		c.polled = false
	}
	c.blind = c.newest == known && (garbage > 0 || r.unanswered)
	c.settle(lastRow)
	c.learnGauges(r)
	return garbage
}

func (c *card) learnPoints(r *reading) (garbage int) {
	if len(r.points) == 0 {
		return 0
	}
	if c.domain == unknownClock || !c.anyPlaced(r) {
		c.domain = r.clocks.domainOf(r.points) // for the first time, or a driver that was replaced, or a clock that was set
	}
	newest := uint64(0)
	for _, p := range r.points {
		at, ok := r.clocks.place(c.domain, p.raw)
		switch {
		case p.raw == 0: // room for a value that came with none
		case !ok || !c.value(at, p.value):
			garbage++
		default:
			newest = max(newest, p.raw)
		}
	}
	if newest > 0 {
		c.since = newest // less than before, where the driver's clock was set back
	}
	return garbage
}

// anyPlaced says whether the known clock explains any of the driver's timestamps.
func (c *card) anyPlaced(r *reading) bool {
	for _, p := range r.points {
		if _, ok := r.clocks.place(c.domain, p.raw); ok {
			return true
		}
	}
	return false
}

// value takes utilisation in percent. It gives false for what is none. A value that is known already does nothing.
func (c *card) value(at time.Duration, percent float64) bool {
	if !(percent >= 0 && percent <= 100) { // not a number is none either
		return false
	}
	if c.busy.add(at, percent/100) {
		c.newest = at
	}
	return true
}

// settle decides how much of what was told late is made up for.
func (c *card) settle(lastRow time.Duration) {
	debt := c.busy.at(lastRow) + c.offset - c.given
	switch {
	case !c.settled:
		c.offset -= debt
		c.settled = c.newest != 0
	case debt > mostDebt:
		c.offset -= debt - mostDebt
	}
	c.busy.forget(lastRow)
}

func (c *card) learnGauges(r *reading) {
	if r.gauges.Has&sample.HasLinkMax != 0 {
		c.facts.LinkWidthMax, c.facts.LinkGenerationMax = r.gauges.LinkWidthMax, r.gauges.LinkGenerationMax
		c.facts.Has |= sample.HasLinkMax
	}
	if !r.asked {
		return
	}
	if c.gauges.Has&sample.HasEnergy != 0 {
		c.before, c.energy = c.gauges.Energy, c.gaugeAt
	}
	c.gauges, c.gaugeAt = r.gauges, r.clocks.at.Mono
	if c.gauges.Has&sample.HasEnergy != 0 && c.energy != 0 && c.gauges.Energy >= c.before && c.gaugeAt > c.energy {
		watts := (c.gauges.Energy - c.before) / (c.gaugeAt - c.energy).Seconds()
		if watts <= mostPower {
			c.gauges.Power, c.gauges.Has = watts, c.gauges.Has|sample.HasPower
		}
	}
}

// row is the GPU at a moment that is later than the row before by step.
func (c *card) row(at, step time.Duration) sample.GPU {
	g := c.facts
	g.Status = c.status
	if c.works() {
		c.given += min(max(c.busy.at(at)+c.offset-c.given, 0), step)
	}
	g.Busy = c.given
	if g.Status != sample.GPUWorks {
		return g
	}
	g.MemoryUsed, g.MemoryTotal = c.gauges.MemoryUsed, c.gauges.MemoryTotal
	g.Temperature, g.Power, g.Energy = c.gauges.Temperature, c.gauges.Power, c.energyAt(at)
	g.LinkWidth, g.LinkGeneration = c.gauges.LinkWidth, c.gauges.LinkGeneration
	g.Has |= c.gauges.Has
	if c.blind {
		g.Has |= sample.LacksBusy
	}
	return g
}

// energyAt lies on the line between the two newest readings: a counter that stood still for a second and then jumped
// would be wrong in every window's difference.
func (c *card) energyAt(at time.Duration) float64 {
	now := c.gauges.Energy
	if c.gauges.Has&sample.HasEnergy == 0 || c.energy == 0 || now < c.before || at >= c.gaugeAt || c.gaugeAt <= c.energy {
		return now
	}
	share := float64(max(at-c.energy, 0)) / float64(c.gaugeAt-c.energy)
	return c.before + share*(now-c.before)
}

// lose marks a GPU that cannot be asked any more.
func (c *card) lose() {
	c.device, c.status = nil, sample.GPULost
	c.unsettle()
}

// hang marks a GPU about which a call does not return.
func (c *card) hang() {
	c.status = sample.GPUHung
	c.unsettle()
}

// unsettle lets Busy go on, after a time in which the GPU could not be read, from where it was.
func (c *card) unsettle() {
	c.settled, c.gaugeAt, c.energy, c.gauges = false, 0, 0, sample.GPU{}
}
