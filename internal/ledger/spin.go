package ledger

import "math"

// spin finds out whether a job's leading thread spins while the accelerator computes, as CUDA does by default, or
// sleeps. Both look alike in a single cell when a job does everything in turn: half of the time on the CPU, half of it
// busy. But from cell to cell a spinning thread works more when the accelerator does, and one that decodes and then
// sleeps works less, but for what it waits for storage meanwhile. It is a regression of the changes of its work on
// those of the accelerator's and of the waiting, which forgets.
type spin struct {
	dt, leading, busy, waited float64 // s of the stretch that is not compared yet
	last                      point   // the stretch before
	begun                     bool
	slept                     bool    // in the stretch before, or too much of it to have been spinning
	xy, xx, zy, zz, xz        float64 // sums of products of changes: y of leading, x of busy, z of waited
	sum                       float64 // of both shares, a mean that forgets
	owed                      float64 // s that the accelerator worked and the thread is not known to have spun yet
}

// point is the shares of a stretch in which the leading thread worked, the accelerator did, and storage was waited for.
type point struct{ leading, busy, waited float64 }

const (
	spinStretch = 0.05  // s at least of what is compared; cells that end at the edges of windows may be shorter
	spinMemory  = 0.98  // of each stretch to the next: 50 of them, five seconds
	spinSlope   = -0.35 // between -1, who sleeps, and +1, who spins; one who spins and decodes is at work always: 0
	spinFull    = 0.08  // around 1: so much of both together looks like taking turns
	spinTurns   = 0.3   // and then the slope must be above this
	spinLeast   = 0.5   // of the accelerator's time, at which it can be spinning at all: others may take its CPU meanwhile
	spinLearn   = 0.5   // of each stretch, in that mean
	spinNoise   = 0.001 // squared changes that tell nothing
	spinIdle    = 0.02  // of the accelerator's time: what begins or ends there is the work, and both follow
	spinStep    = 0.2   // larger changes count as this one: one phase gives way to another
	spinLate    = 0.02  // s by which a running thread's time may be late: several of the kernel's ticks
)

// add takes what the leading thread and the accelerator worked in a cell, and what somebody waited for storage. All are
// seconds.
func (s *spin) add(dt, leading, busy, waited float64) {
	s.dt, s.leading, s.busy, s.waited = s.dt+dt, s.leading+leading, s.busy+busy, s.waited+waited
	if s.dt < spinStretch {
		return
	}
	now := point{s.leading / s.dt, s.busy / s.dt, s.waited / s.dt}
	s.dt, s.leading, s.busy, s.waited = 0, 0, 0, 0
	if s.begun && min(now.busy, s.last.busy) > spinIdle {
		dx := clamp(now.busy-s.last.busy, -spinStep, spinStep)
		dy := clamp(now.leading-s.last.leading, -spinStep, spinStep)
		dz := clamp(now.waited-s.last.waited, -spinStep, spinStep)
		for _, sum := range []struct {
			of      *float64
			product float64
		}{{&s.xy, dx * dy}, {&s.xx, dx * dx}, {&s.zy, dz * dy}, {&s.zz, dz * dz}, {&s.xz, dx * dz}} {
			*sum.of = *sum.of*spinMemory + sum.product
		}
	}
	if now.busy > spinIdle {
		s.sum += (now.leading + now.busy + now.waited - s.sum) * spinLearn
	}
	s.last, s.begun, s.slept = now, true, now.leading < spinLeast*now.busy
}

// spins says whether the leading thread spins. Where nothing tells it does: what is then not counted as CPU work is
// left unexplained.
func (s *spin) spins() bool {
	least := spinSlope
	if math.Abs(s.sum-1) < spinFull {
		least = spinTurns
	}
	if s.slept {
		return false
	}
	slope, told := s.slope()
	return !told || slope > least
}

// slope is by how much more the leading thread works where the accelerator does, the waiting being equal.
func (s *spin) slope() (slope float64, told bool) {
	if s.xx < spinNoise {
		return 0, false
	}
	zz := s.zz + spinNoise
	of := s.xx*zz - s.xz*s.xz
	if of < spinNoise*spinNoise {
		return 0, false
	}
	return (s.xy*zz - s.zy*s.xz) / of, true
}

// spun says how much of what the leading thread worked in a cell was spinning. The kernel tells of a thread's time
// late, so what is missing in one cell is looked for in the next.
func (s *spin) spun(leading, busy float64) float64 {
	spun := clamp(leading, 0, busy+s.owed)
	s.owed = clamp(s.owed+busy-spun, 0, spinLate)
	return spun
}
