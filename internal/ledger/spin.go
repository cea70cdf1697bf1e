package ledger

import "math"

// spin finds how a job's leading thread waits for its GPU: it sleeps, or it stays on a CPU, as CUDA does by default.
//
// The thread's time is known: on a CPU, ready, waiting for storage, and asleep otherwise. One that was on a CPU for
// less time than the GPU worked does not spin. One that slept otherwise for less time than that does not sleep.
//
// A thread that was on a CPU for as long as the GPU worked spins, and one that slept for as long sleeps: else that
// would be by chance. Where both or neither is so, changes show which. A spinning thread is on a CPU for longer when
// the GPU works for longer, and one that works and then sleeps for less. That is a regression of the changes of the
// thread's work on those of the GPU's work and of the waiting for storage. Old changes fade out.
type spin struct {
	// Of the stretch that is not complete yet, in s. The thread was asleep for no known cause.
	dt, leading, ready, asleep, busy, waited float64

	last               point // the previous stretch
	begun              bool
	xy, xx, zy, zz, xz float64 // sums of products of changes: y of leading, x of busy, z of waited
	sums               spinSums
	owed               float64 // s of GPU work for which the thread is not known to have been on a CPU yet
}

// spinSums are moving sums of seconds in which the GPU had work: of its work, and of the leading thread.
type spinSums struct{ worked, ran, ready, slept float64 }

// fade adds a stretch.
func (t *spinSums) fade(s *spin) {
	t.worked, t.ran = t.worked*spinMemory+s.busy, t.ran*spinMemory+s.leading
	t.ready, t.slept = t.ready*spinMemory+s.ready, t.slept*spinMemory+s.asleep
}

// point has the shares of a stretch: the leading thread on a CPU or ready, work of the GPU, and waiting for storage.
type point struct{ leading, busy, waited float64 }

const (
	spinStretch = 0.05  // s, the shortest stretch; cells that end at the edges of windows may be shorter
	spinMemory  = 0.98  // weight of the previous stretches: about 50
	spinSlope   = 0.3   // a slope above it is of a thread that spins, below its negative of one that sleeps; at best 1, -1
	spinChance  = 0.15  // share of the GPU's work by which the thread's time on a CPU differs if they are not the same
	spinNoise   = 0.001 // squared changes below this are noise
	spinIdle    = 0.02  // share of the GPU's time below which work begins or ends, and both follow
	spinStep    = 0.2   // larger changes are cut to this: they are changes of phase
	spinLate    = 0.02  // s, the delay of a running thread's CPU time: several kernel ticks
)

// add adds a cell in which the leading thread may have waited for storage for so long. A time in which the GPU had no
// work says nothing.
func (s *spin) add(c *cell, waited float64) {
	busy := c.worked()
	s.dt, s.leading, s.ready = s.dt+c.dt, s.leading+c.leading, s.ready+c.ready
	s.busy, s.waited = s.busy+busy, s.waited+waited
	s.asleep += max(0, c.dt-c.leading-c.ready-waited)
	// Within a few samples of its driver nothing is known about a GPU.
	if s.dt < max(spinStretch, 2*c.period) {
		return
	}
	if s.busy > spinIdle*s.dt {
		s.sums.fade(s)
	}
	now := point{(s.leading + s.ready) / s.dt, s.busy / s.dt, s.waited / s.dt}
	s.dt, s.leading, s.ready, s.asleep, s.busy, s.waited = 0, 0, 0, 0, 0, 0
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
	s.last, s.begun = now, true
}

// spins reports whether the leading thread spins.
func (s *spin) spins() bool {
	slope, known := s.slope()
	t := &s.sums
	ran := t.ran <= t.worked*(1+spinChance) // ready is left out: it may lose its CPU while it spins
	slept := math.Abs(t.slept-t.worked) <= t.worked*spinChance
	switch {
	case t.ran+t.ready < t.worked*(1-spinChance):
		return false
	case t.slept < t.worked/2:
		return true
	case ran != slept:
		return ran
	case known && math.Abs(slope) > spinSlope:
		return slope > 0
	}
	return ran && (!known || slope > 0)
}

// slope returns how much more the leading thread works when the GPU does, with equal waiting.
func (s *spin) slope() (slope float64, ok bool) {
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

// overlap returns how long the leading thread was on a CPU, or ready for one, while the GPU worked: all the time that
// the GPU worked if it spins, else as long as it did not sleep. The kernel reports a thread's time late, so that a part
// of spinning may be in the next cell. Of a driver's samples a part may be in the cell before.
func (s *spin) overlap(c *cell, waited float64) float64 {
	busy, runnable := c.worked(), max(0, c.leading+c.ready)
	late := max(spinLate, c.period)
	if !c.spins {
		s.owed = late
		return clamp(busy-max(0, c.dt-runnable-waited), 0, runnable)
	}
	spun := clamp(runnable, 0, busy+s.owed)
	s.owed = clamp(s.owed+busy-spun, 0, late)
	return spun
}
