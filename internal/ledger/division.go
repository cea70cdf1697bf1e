package ledger

import (
	"time"

	"github.com/stallspan/stallspan/internal/history"
)

// part is a stretch of a block, up to a reading of the GPU.
type part struct {
	until time.Duration
	division
}

// division is the time of a stretch by class, in seconds, and the share of each in which the GPU was idle.
type division struct {
	time, idle [classes]float64
}

// add adds so many seconds of idle time, or takes them away.
func (d *division) add(idle float64, order [][]class) {
	back := idle < 0
	for i := range order {
		level := order[i]
		if back {
			level = order[len(order)-1-i]
		}
		room := 0.0
		for _, c := range level {
			room += d.room(c, idle < 0)
		}
		if room <= 0 {
			continue
		}
		share := max(-1, min(1, idle/room))
		for _, c := range level {
			if d.time[c] > 0 {
				d.idle[c] += share * d.room(c, idle < 0) / d.time[c]
			}
		}
		idle -= share * room
	}
}

// room is how many seconds of a class can still become idle, or busy.
func (d *division) room(c class, busy bool) float64 {
	if busy {
		return d.time[c] * d.idle[c]
	}
	return d.time[c] * (1 - d.idle[c])
}

// fit moves idle time between the parts until the busy time up to the end of each is what the driver says. The driver's
// samples are period long, and interpolated where they are longer than a step.
func (b *block) fit(steps []history.Step, period time.Duration, order [][]class) {
	ahead := 0.0 // by which the busy time so far is more than the driver's
	for i := range b.parts {
		p := &b.parts[i]
		p.idle = b.idle
		before := p.busy()
		ahead += before - steps[i].Grown
		slack := slackAt(steps, i, period)
		if off := ahead - max(-slack, min(slack, ahead)); off != 0 {
			p.add(off, order)
			ahead += p.busy() - before
		}
	}
}

// scale gives each part the idle time that the driver reports of it, and divides that in the ratio in which the classes
// are idle in the block. A few moments say too little about the part to move idle time to another class.
func (b *block) scale(steps []history.Step, order [][]class) {
	for i := range b.parts {
		p := &b.parts[i]
		p.idle = b.idle
		idle := max(0, (steps[i].End-steps[i].Start).Seconds()-steps[i].Grown)
		expected := 0.0
		for c := range p.time {
			expected += p.time[c] * p.idle[c]
		}
		if expected < idle*minExpected {
			p.idle = [classes]float64{}
			p.add(idle, order)
			continue
		}
		for c := range p.idle {
			p.idle[c] *= idle / max(expected, 1e-9)
		}
	}
}

// slackAt is how far off the busy time up to the end of a step may be, in seconds. The GPU may have worked in the first
// part of a sample, or in the last.
func slackAt(steps []history.Step, i int, period time.Duration) float64 {
	if i == len(steps)-1 {
		return 0
	}
	most := 0.0
	for n := i; n >= 0 && steps[i].End-steps[n].End < period; n-- {
		most = max(most, slackOf(&steps[n]))
	}
	for n := i + 1; n < len(steps) && steps[n].Start-steps[i].End < period; n++ {
		most = max(most, slackOf(&steps[n]))
	}
	return minSlack.Seconds() + most*period.Seconds()
}

// slackOf is how far off a sample that is a second long may be within.
func slackOf(s *history.Step) float64 {
	share := min(1, s.Grown/(s.End-s.Start).Seconds())
	return share * (1 - share)
}

// busy is how long the GPU worked, in seconds.
func (d *division) busy() (sum float64) {
	for c := range d.time {
		sum += d.time[c] * (1 - d.idle[c])
	}
	return sum
}
