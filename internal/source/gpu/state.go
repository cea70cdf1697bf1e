package gpu

import (
	"math"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// maxBacklog bounds the busy time of late samples that is caught up on. If samples arrive after the rows of their time
// were emitted, the busy time of later rows grows faster than the GPU worked, but never faster than time, until the sum
// is right. A larger backlog is dropped, because catching up would hide that the GPU is idle now.
const maxBacklog = time.Second

// deviceState is the state of one GPU or MIG device.
type deviceState struct {
	device   *deviceReader // nil while the device is lost or not listed
	info     sample.GPU    // constant properties
	call     *call         // the newest reading
	hungAt   int           // the row whose call took too long, if one did
	check    *call         // of its processes
	rest     *rest         // nil for one that rests with the others
	status   sample.GPUStatus
	appeared time.Duration // Stamp.Mono of its first listing, or of its return
	due      time.Duration // Stamp.Mono of the next reading

	busy     integral
	emitted  time.Duration // Busy of the newest row
	offset   time.Duration // from the integral to Busy
	anchored bool          // offset is valid: false before the first reading, and after a time without readings

	domain        domain
	since         uint64 // newest valid timestamp of the driver
	late          lateness
	newest        time.Duration // time up to which utilization is known; 0 if unknown
	noUtilization bool          // the newest reading had no valid utilization
	averages      bool          // the newest sample is an average
	pollsRate     bool          // the driver has no sample buffer, so the current rate is read often

	gauges       sample.GPU // with the energy so far
	energy       energy
	gaugeAt      time.Duration // time of gauges; 0 for none
	watched      bool          // its memory is read more often
	memoryAt     time.Duration // the newest reading of its memory
	memoryListed uint64        // used memory when the processes were listed, bytes
	processes    []sample.GPUProcess
	unused       bool          // no process was listed
	prevEnergy   float64       // joules at prevEnergyAt
	prevEnergyAt time.Duration // time of the reading before; 0 for none

	xids []sample.XID // immutable, shared with rows
}

// isNew reports whether the device may still return its first samples.
func (g *deviceState) isNew(now time.Duration) bool { return g.newest == 0 && now-g.appeared < hold }

// isHung reports whether its own call does not return.
func (g *deviceState) isHung() bool { return g.call.isUnderWay() && g.call.hung }

// readable reports whether the device can be read.
func (g *deviceState) readable() bool { return g.device != nil && g.status == sample.GPUWorks }

// apply updates the state from a reading. lastRow is the time of the newest row. It returns the number of garbage
// values.
func (g *deviceState) apply(r *reading, lastRow time.Duration) int {
	if r.silent {
		g.info.Has |= sample.LacksBusy
	}
	known := g.newest
	garbage, unknown := g.applySamples(r)
	if r.hasRate {
		// The buffer is preferred, but it is empty while some GPUs are idle.
		g.pollsRate = r.lacksBuffer || r.rate > 0
		if !g.addUtilization(r.clocks.at.Mono, r.rate, g.busy.addRate) {
			garbage++
		}
	} else {
		g.pollsRate = false
	}
	g.noUtilization = r.hollow || g.newest == known && (garbage > 0 || unknown || r.utilizationFailed)
	g.applyBacklog(lastRow)
	g.applyGauges(r)
	return garbage
}

func (g *deviceState) applySamples(r *reading) (garbage int, unknown bool) {
	if len(r.points) == 0 {
		return 0, false
	}
	if g.domain == unknownClock || !g.explainsAny(r) {
		g.domain = r.clocks.domainOf(r.points) // first reading, another driver, or a clock that was set
	}
	newest, first := uint64(0), g.since == 0
	var oldestNew, newestAt time.Duration
	for _, p := range r.points {
		at, ok := r.clocks.place(g.domain, p.timestamp)
		known := g.busy.sampled()
		switch {
		case p.timestamp == 0: // an unused element of the buffer
		case math.IsNaN(p.value): // not available
			unknown = true
		case !ok || !g.addUtilization(at, p.value, g.adder(p.kind)):
			garbage++
		default:
			newest, newestAt, g.averages = max(newest, p.timestamp), at, p.kind == averaged
			if oldestNew == 0 && at > known {
				oldestNew = at
			}
		}
	}
	if newest > 0 {
		g.since = newest // lower than before if the driver's clock was set back
		switch now := r.clocks.at.Mono; {
		case first: // the buffer goes back further
			g.late.observe(now - newestAt + readInterval)
		case oldestNew != 0:
			g.late.observe(now - oldestNew + g.busy.period)
		}
	}
	return garbage, unknown
}

// explainsAny reports whether the known clock domain fits any of the driver's timestamps.
func (g *deviceState) explainsAny(r *reading) bool {
	for _, p := range r.points {
		if _, ok := r.clocks.place(g.domain, p.timestamp); ok {
			return true
		}
	}
	return false
}

// addUtilization takes utilization in percent and returns false if it is garbage. Known samples are ignored.
func (g *deviceState) addUtilization(at time.Duration, percent float64, add func(time.Duration, float64) bool) bool {
	if !(percent >= 0 && percent <= 100) { // also false for NaN
		return false
	}
	if add(at, percent/100) {
		g.newest = at
	}
	return true
}

func (g *deviceState) adder(kind sampleKind) func(time.Duration, float64) bool {
	if kind == summed {
		return g.busy.addSum
	}
	return g.busy.add
}

// lacksBusy reports whether its busy time is not known.
func (g *deviceState) lacksBusy() bool { return g.noUtilization || g.info.Has&sample.LacksBusy != 0 }

// applyBacklog limits the busy time of late samples to maxBacklog, and what current rates counted too much.
func (g *deviceState) applyBacklog(lastRow time.Duration) {
	backlog := g.busy.at(lastRow) + g.offset - g.emitted
	switch {
	case !g.anchored:
		g.offset -= backlog
		g.anchored = g.newest != 0
	case backlog > maxBacklog:
		g.offset -= backlog - maxBacklog
	case backlog < -maxBacklog:
		g.offset -= backlog + maxBacklog
	}
	g.busy.trim(lastRow - maxLag) // samples may still replace current rates
}

func (g *deviceState) applyGauges(r *reading) {
	if r.gauges.Has&sample.HasLinkMax != 0 {
		g.info.LinkWidthMax, g.info.LinkGenerationMax = r.gauges.LinkWidthMax, r.gauges.LinkGenerationMax
		g.info.Has |= sample.HasLinkMax
	}
	if !r.hasDetails {
		return
	}
	if g.gauges.Has&sample.HasEnergy != 0 {
		g.prevEnergy, g.prevEnergyAt = g.gauges.Energy, g.gaugeAt
	}
	step := r.clocks.at.Mono - g.gaugeAt
	g.gauges, g.gaugeAt = r.gauges, r.clocks.at.Mono
	switch {
	case g.gauges.Has&sample.HasEnergy != 0:
		g.gauges.Energy = g.energy.count(g.gauges.Energy)
	case r.energySpared:
		if step > maxStep {
			step = 0 // the mean of the last second says nothing about the time before it
		}
		g.gauges.Energy, g.gauges.Has = g.energy.add(g.gauges.Power*step.Seconds()), g.gauges.Has|sample.HasEnergy
	}
	if !r.meanPower && g.hasEnergyInterval() {
		watts := (g.gauges.Energy - g.prevEnergy) / (g.gaugeAt - g.prevEnergyAt).Seconds()
		if watts <= maxWatts {
			g.gauges.Power, g.gauges.Has = watts, g.gauges.Has|sample.HasPower
		}
	}
}

// row returns the device's row at a time that is step later than the row before.
func (g *deviceState) row(at, step time.Duration) sample.GPU {
	row := g.info
	row.Status = g.status
	if g.readable() {
		g.emitted += min(max(g.busy.at(at)+g.offset-g.emitted, 0), step)
	}
	row.Busy, row.Period = g.emitted, g.busy.period.Round(time.Millisecond)
	if row.Vendor != "" { // each reading is a sample, and those at the edges of windows are no better
		row.Period = max(row.Period, readInterval)
	}
	if row.Status != sample.GPUWorks {
		return row
	}
	row.MemoryUsed, row.MemoryTotal = g.gauges.MemoryUsed, g.gauges.MemoryTotal
	row.Temperature, row.Power, row.Energy = g.gauges.Temperature, g.gauges.Power, g.energyAt(at)
	row.LinkWidth, row.LinkGeneration = g.gauges.LinkWidth, g.gauges.LinkGeneration
	row.Has |= g.gauges.Has
	if g.noUtilization {
		row.Has |= sample.LacksBusy
	} else if g.averages {
		row.Has |= sample.AveragesBusy
	}
	return row
}

// energyAt interpolates between the two newest readings: a counter that stands still for a second and then jumps would
// be wrong in every window's difference.
func (g *deviceState) energyAt(at time.Duration) float64 {
	now := g.gauges.Energy
	if !g.hasEnergyInterval() || at >= g.gaugeAt {
		return now
	}
	share := float64(max(at-g.prevEnergyAt, 0)) / float64(g.gaugeAt-g.prevEnergyAt)
	return g.prevEnergy + share*(now-g.prevEnergy)
}

// hasEnergyInterval reports whether energy is known at two times, between which it did not decrease.
func (g *deviceState) hasEnergyInterval() bool {
	return g.gauges.Has&sample.HasEnergy != 0 && g.prevEnergyAt != 0 && g.gaugeAt > g.prevEnergyAt &&
		g.gauges.Energy >= g.prevEnergy
}

// unanchor makes Busy continue from its last value after a time without readings.
func (g *deviceState) unanchor() {
	g.anchored, g.gaugeAt, g.prevEnergyAt, g.gauges = false, 0, 0, sample.GPU{}
}

// jump is the change of a GPU's used memory, in bytes, from which a program is assumed to have come or gone: CUDA takes
// some hundred MiB for each.
const jump = 128 << 20

// memoryJumped reports whether the used memory is another one than when the processes were listed.
func (g *deviceState) memoryJumped() bool {
	now := g.gauges.MemoryUsed
	return g.gauges.Has&sample.HasMemory != 0 && max(now, g.memoryListed)-min(now, g.memoryListed) >= jump
}
