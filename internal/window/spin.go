package window

import "math"

// spin finds out whether a job's leading thread spins while the accelerator computes, as CUDA does by default, or
// sleeps. Both look alike in a single cell when a job does everything in turn: half of the time on the CPU, half of it
// busy. But from cell to cell a spinning thread works more when the accelerator does, and one that decodes and then
// sleeps works less. It is a regression of the changes of the one on those of the other, which forgets.
type spin struct {
	dt, leading, busy float64 // s of the stretch that is not compared yet
	last              point   // the stretch before
	begun             bool
	slept             bool    // in the stretch before, or too much of it to have been spinning
	xy, xx            float64 // sums of products of changes
	sum               float64 // of both shares, a mean that forgets
	owed              float64 // s that the accelerator worked and the thread is not known to have spun yet
}

// point is the shares of a stretch in which the leading thread worked and the accelerator did.
type point struct{ leading, busy float64 }

const (
	spinStretch = 0.05  // s at least of what is compared; cells that end at the edges of windows may be shorter
	spinMemory  = 0.98  // of each stretch to the next: 50 of them, five seconds
	spinSlope   = -0.35 // between -1, who sleeps, and +1, who spins; one who spins and decodes is at work always: 0
	spinFull    = 0.06  // around 1: so much of both together looks like taking turns
	spinTurns   = 0.3   // and then the slope must be above this
	spinLeast   = 0.5   // of the accelerator's time, at which it can be spinning at all: others may take its CPU meanwhile
	spinLearn   = 0.5   // of each stretch, in that mean
	spinNoise   = 0.001 // squared changes that tell nothing
	spinIdle    = 0.02  // of the accelerator's time: what begins or ends there is the work, and both follow
	spinStep    = 0.2   // larger changes count as this one: one phase gives way to another
	spinLate    = 0.02  // s by which a running thread's time may be late: several of the kernel's ticks
)

// add takes what the leading thread and the accelerator worked in a cell. All are seconds.
func (s *spin) add(dt, leading, busy float64) {
	s.dt, s.leading, s.busy = s.dt+dt, s.leading+leading, s.busy+busy
	if s.dt < spinStretch {
		return
	}
	now := point{s.leading / s.dt, s.busy / s.dt}
	s.dt, s.leading, s.busy = 0, 0, 0
	if s.begun && min(now.busy, s.last.busy) > spinIdle {
		dx := clamp(now.busy-s.last.busy, -spinStep, spinStep)
		dy := clamp(now.leading-s.last.leading, -spinStep, spinStep)
		s.xy = s.xy*spinMemory + dx*dy
		s.xx = s.xx*spinMemory + dx*dx
	}
	if now.busy > spinIdle {
		s.sum += (now.leading + now.busy - s.sum) * spinLearn
	}
	s.last, s.begun, s.slept = now, true, now.leading < spinLeast*now.busy
}

// spins says whether the leading thread spins. Where nothing tells it does: what is then not counted as CPU work is left
// unexplained.
func (s *spin) spins() bool {
	least := spinSlope
	if math.Abs(s.sum-1) < spinFull {
		least = spinTurns
	}
	return !s.slept && (s.xx < spinNoise || s.xy > least*s.xx)
}

// spun says how much of what the leading thread worked in a cell was spinning. The kernel tells of a thread's time late, so
// what is missing in one cell is looked for in the next.
func (s *spin) spun(leading, busy float64) float64 {
	spun := clamp(leading, 0, busy+s.owed)
	s.owed = clamp(s.owed+busy-spun, 0, spinLate)
	return spun
}
