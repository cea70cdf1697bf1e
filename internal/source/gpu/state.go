package gpu

import (
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// mostDebt is how much busy time that was told late is made up for. The driver may tell of a time whose rows are gone
// already, without it: later rows then grow faster than the GPU worked, though never faster than time, until the sum is
// right again. More than this is left out, for it would hide that the GPU is idle now.
const maxBacklog = time.Second

// card is one GPU and everything that was learned of it.
type deviceState struct {
	device      *deviceReader // nil while it is lost
	info        sample.GPU    // what does not change
	status      sample.GPUStatus
	noThread    bool          // hung only because no thread is left to ask it
	partitioned bool          // into MIG slices
	due         time.Duration // Stamp.Mono of its next reading

	busy     integral
	emitted  time.Duration // Busy of the newest row
	offset   time.Duration // from the integral to Busy
	anchored bool          // offset holds: false until the first reading, and after a time in which it could not be read

	domain        domain
	since         uint64        // newest timestamp of the driver that was believed
	newest        time.Duration // up to which its utilisation is known; 0 for not at all
	noUtilization bool          // the newest reading told nothing of utilisation that can be believed
	pollsRate     bool          // the driver keeps no buffer for it: its rate is asked for often

	gauges       sample.GPU
	gaugeAt      time.Duration // when gauges were read; 0 for never
	prevEnergy   float64       // joules at prevEnergyAt
	prevEnergyAt time.Duration // the reading before the newest; 0 for none

	xids []sample.XID // never changed once given
}

// works says that the GPU can be asked.
func (c *deviceState) readable() bool { return c.device != nil && c.status == sample.GPUWorks }

// learn takes over what a reading says. lastRow is when the newest row was. It gives how many values were garbage.
func (c *deviceState) apply(r *reading, lastRow time.Duration) (garbage int) {
	if r.unsupported[querySamples] && r.unsupported[queryRates] {
		c.info.Has |= sample.LacksBusy
	}
	known := c.newest
	garbage = c.applySamples(r)
	if r.hasRate {
		// The buffer is preferred where it says anything, but it says nothing while some GPUs idle.
		c.pollsRate = r.unsupported[querySamples] || r.rate > 0
		if !c.addUtilization(r.clocks.at.Mono, r.rate) {
			garbage++
		}
	} else {
		c.pollsRate = false
	}
	c.noUtilization = c.newest == known && (garbage > 0 || r.utilizationFailed)
	c.applyBacklog(lastRow)
	c.applyGauges(r)
	return garbage
}

func (c *deviceState) applySamples(r *reading) (garbage int) {
	if len(r.points) == 0 {
		return 0
	}
	if c.domain == unknownClock || !c.explainsAny(r) {
		c.domain = r.clocks.domainOf(r.points) // for the first time, or a driver that was replaced, or a clock that was set
	}
	newest := uint64(0)
	for _, p := range r.points {
		at, ok := r.clocks.place(c.domain, p.timestamp)
		switch {
		case p.timestamp == 0: // room for a value that came with none
		case !ok || !c.addUtilization(at, p.value):
			garbage++
		default:
			newest = max(newest, p.timestamp)
		}
	}
	if newest > 0 {
		c.since = newest // less than before, where the driver's clock was set back
	}
	return garbage
}

// anyPlaced says whether the known clock explains any of the driver's timestamps.
func (c *deviceState) explainsAny(r *reading) bool {
	for _, p := range r.points {
		if _, ok := r.clocks.place(c.domain, p.timestamp); ok {
			return true
		}
	}
	return false
}

// value takes utilisation in percent. It gives false for what is none. A value that is known already does nothing.
func (c *deviceState) addUtilization(at time.Duration, percent float64) bool {
	if !(percent >= 0 && percent <= 100) { // not a number is none either
		return false
	}
	if c.busy.add(at, percent/100) {
		c.newest = at
	}
	return true
}

// settle decides how much of what was told late is made up for.
func (c *deviceState) applyBacklog(lastRow time.Duration) {
	backlog := c.busy.at(lastRow) + c.offset - c.emitted
	switch {
	case !c.anchored:
		c.offset -= backlog
		c.anchored = c.newest != 0
	case backlog > maxBacklog:
		c.offset -= backlog - maxBacklog
	}
	c.busy.forget(lastRow)
}

func (c *deviceState) applyGauges(r *reading) {
	if r.gauges.Has&sample.HasLinkMax != 0 {
		c.info.LinkWidthMax, c.info.LinkGenerationMax = r.gauges.LinkWidthMax, r.gauges.LinkGenerationMax
		c.info.Has |= sample.HasLinkMax
	}
	if !r.hasDetails {
		return
	}
	if c.gauges.Has&sample.HasEnergy != 0 {
		c.prevEnergy, c.prevEnergyAt = c.gauges.Energy, c.gaugeAt
	}
	c.gauges, c.gaugeAt = r.gauges, r.clocks.at.Mono
	if c.gauges.Has&sample.HasEnergy != 0 && c.prevEnergyAt != 0 && c.gauges.Energy >= c.prevEnergy && c.gaugeAt > c.prevEnergyAt {
		watts := (c.gauges.Energy - c.prevEnergy) / (c.gaugeAt - c.prevEnergyAt).Seconds()
		if watts <= maxPower {
			c.gauges.Power, c.gauges.Has = watts, c.gauges.Has|sample.HasPower
		}
	}
}

// row is the GPU at a moment that is later than the row before by step.
func (c *deviceState) row(at, step time.Duration) sample.GPU {
	g := c.info
	g.Status = c.status
	if c.readable() {
		c.emitted += min(max(c.busy.at(at)+c.offset-c.emitted, 0), step)
	}
	g.Busy = c.emitted
	if g.Status != sample.GPUWorks {
		return g
	}
	g.MemoryUsed, g.MemoryTotal = c.gauges.MemoryUsed, c.gauges.MemoryTotal
	g.Temperature, g.Power, g.Energy = c.gauges.Temperature, c.gauges.Power, c.energyAt(at)
	g.LinkWidth, g.LinkGeneration = c.gauges.LinkWidth, c.gauges.LinkGeneration
	g.Has |= c.gauges.Has
	if c.noUtilization {
		g.Has |= sample.LacksBusy
	}
	return g
}

// energyAt lies on the line between the two newest readings: a counter that stood still for a second and then jumped
// would be wrong in every window's difference.
func (c *deviceState) energyAt(at time.Duration) float64 {
	now := c.gauges.Energy
	if c.gauges.Has&sample.HasEnergy == 0 || c.prevEnergyAt == 0 || now < c.prevEnergy || at >= c.gaugeAt || c.gaugeAt <= c.prevEnergyAt {
		return now
	}
	share := float64(max(at-c.prevEnergyAt, 0)) / float64(c.gaugeAt-c.prevEnergyAt)
	return c.prevEnergy + share*(now-c.prevEnergy)
}

// lose marks a GPU that cannot be asked any more.
func (c *deviceState) markLost() {
	c.device, c.status = nil, sample.GPULost
	c.unanchor()
}

// hang marks a GPU about which a call does not return.
func (c *deviceState) markHung() {
	c.status = sample.GPUHung
	c.unanchor()
}

// unsettle lets Busy go on, after a time in which the GPU could not be read, from where it was.
func (c *deviceState) unanchor() {
	c.anchored, c.gaugeAt, c.prevEnergyAt, c.gauges = false, 0, 0, sample.GPU{}
}
