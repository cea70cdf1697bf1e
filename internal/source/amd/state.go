package amd

import (
	"errors"
	"math"
	"os"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// state is what is known of one card from one reading to the next.
type state struct {
	card    *card
	reading task[reading]
	status  sample.GPUStatus
	lost    bool // it is not listed
	hung    bool // the read under way is too late

	at, before       time.Duration // Stamp.Mono of the newest reading, and of the one before; 0 for none
	busy, busyBefore time.Duration // up to then
	emitted          time.Duration // Busy of the newest row
	last             metrics       // of the newest reading
	averaged         bool          // the newest growth is an average
	unknown          bool          // there was none

	restAt, slowAt       time.Duration // Stamp.Mono
	gauges               sample.GPU
	joulesAt             time.Duration // of the reading of energy before the newest; 0 for none
	joulesBefore         float64
	slow                 sample.GPUValues // the newest of what is read rarely
	power, heat, hotChip float64          // seconds in which these reduced clocks
	detail               *sample.GPUDetail

	used  time.Duration // when a process used the card, or it was woken
	slept bool          // since then
}

// maxGap bounds the time that an average stands for.
const maxGap = 2 * time.Second

// rests reports whether the card sleeps, or may: the kernel may suspend it, and no process has used it for a minute. A
// card that something else has woken is read for another minute.
func (g *state) rests(used bool, now time.Duration) bool {
	asleep := g.card.isAsleep()
	switch {
	case used:
		g.used, g.slept = now, false
	case asleep:
		g.slept = true
	case g.slept:
		g.used, g.slept = now, false
	}
	return asleep || now-g.used >= restAfter && g.card.text("power/control") == "auto"
}

// leave notes that the card is not read.
func (g *state) leave(why sample.GPUStatus) {
	g.status, g.gauges, g.detail = why, sample.GPU{}, nil
	g.at, g.before, g.restAt, g.joulesAt = 0, 0, 0, 0
}

// problem is what could not be read and what to do; nil for nothing.
func (r *reading) problem() error {
	switch {
	case r.err != nil:
		return r.err
	case r.parsed == nil, errors.Is(r.parsed, errAPU), errors.Is(r.parsed, os.ErrNotExist):
		return nil
	}
	return errors.New(r.card.info.ID + ": " + r.parsed.Error())
}

// apply takes over a reading.
func (g *state) apply(r *reading) {
	if !r.answered {
		g.leave(sample.GPUUnknown)
		return
	}
	g.status = sample.GPUWorks
	elapsed := r.at.Mono - g.at
	if g.at == 0 {
		elapsed = 0
	}
	share, known, exact := g.share(r, elapsed)
	grown := elapsed
	if !exact {
		grown = min(elapsed, maxGap)
	}
	if g.at == 0 {
		g.busyBefore, g.busy = g.emitted, g.emitted
		g.before = r.at.Mono
	} else {
		g.busyBefore, g.before = g.busy, g.at
		g.busy += time.Duration(share * float64(grown))
	}
	g.unknown, g.averaged = !known, known && !exact
	g.throttle(r, elapsed)
	g.at, g.last = r.at.Mono, r.table
	if r.has.rest {
		g.applyRest(r)
	}
}

// share returns the share of time in which the GPU worked since the reading before. It is exact if the firmware has
// added it up.
func (g *state) share(r *reading, elapsed time.Duration) (share float64, known, exact bool) {
	summed := r.table.has[activitySum] && (g.at == 0 || g.last.has[activitySum])
	if summed && g.at == 0 {
		return 0, true, true
	}
	if summed {
		base, known := r.table.busyBase()
		past, before := g.last.busyBase()
		periods := float64(elapsed.Milliseconds())
		if known && before {
			periods = float64(uint32(base - past))
		}
		sum := float64(uint32(r.table.values[activitySum] - g.last.values[activitySum]))
		// What was reset has grown by too much. Two clocks differ a little.
		if share = sum / 100 / periods; share <= 1.02 && periods < math.MaxInt32 {
			return min(share, 1), true, true
		}
	}
	return r.average, r.averages, false
}

// throttlersOf has the bits of throttlers: limits of power, temperatures, and signals of the board.
var throttlersOf = [3]uint64{0xff, 0xfff << 32, 0xf << 44}

// throttle adds the time in which clocks were reduced.
func (g *state) throttle(r *reading, elapsed time.Duration) {
	now, past := &r.table, &g.last
	seconds := min(elapsed, maxGap).Seconds()
	periods := float64(uint32(now.values[counts] - past.values[counts]))
	for i, f := range [...]field{powerCounts, thermalCounts, processorHotCounts} {
		sum := [...]*float64{&g.power, &g.heat, &g.hotChip}[i]
		share := float64(uint32(now.values[f]-past.values[f])) / periods
		if now.has[f] && past.has[f] && share <= 1 && periods < math.MaxInt32 {
			*sum += share * elapsed.Seconds()
		}
		if now.has[throttlers] && now.values[throttlers]&throttlersOf[i] != 0 {
			*sum += seconds
		}
	}
}

// applyRest takes over what is read once a second.
func (g *state) applyRest(r *reading) {
	if g.gauges.Has&sample.HasEnergy != 0 && r.gauges.Energy >= g.gauges.Energy {
		g.joulesBefore, g.joulesAt = g.gauges.Energy, g.restAt
	} else {
		g.joulesAt = 0
	}
	g.gauges, g.restAt = r.gauges, r.at.Mono
	if r.has.slow {
		g.slow = r.slow
	}
	for q, v := range g.slow.All() {
		r.detail.Set(q, v)
	}
	if r.table.has[throttlers] || r.table.has[powerCounts] {
		r.detail.Set(sample.GPUThrottledPower, g.power)
		r.detail.Set(sample.GPUThrottledThermal, g.heat)
		r.detail.Set(sample.GPUThrottledHWThermal, g.hotChip)
	}
	g.detail = &sample.GPUDetail{GPU: g.card.info.ID, At: r.at.Mono, Values: r.detail}
}

// row returns the card's row at a time that is step later than the row before.
func (g *state) row(at, step time.Duration) sample.GPU {
	row := g.card.info
	if g.status == sample.GPUWorks {
		row = g.gauges
		g.emitted += min(max(between(at, g.before, g.at, g.busyBefore, g.busy)-g.emitted, 0), step)
	}
	row.Status, row.Busy = g.status, g.emitted
	if row.Status != sample.GPUWorks {
		return row
	}
	row.Period = max(readInterval, (g.at - g.before).Round(time.Millisecond)) // edges of windows have readings between
	if g.joulesAt != 0 {
		row.Energy = between(at, g.joulesAt, g.restAt, g.joulesBefore, row.Energy)
	}
	if g.unknown {
		row.Has |= sample.LacksBusy
	}
	if g.averaged {
		row.Has |= sample.AveragesBusy
	}
	return row
}

// between interpolates a value between two times. It is constant before and after them.
func between[T time.Duration | float64](at, from, to time.Duration, a, b T) T {
	if at >= to || to <= from {
		return b
	}
	return a + T(float64(b-a)*float64(max(at-from, 0))/float64(to-from))
}
