package ledger

import "math"

// spin detects whether a job's leading thread spins while the GPU computes, as CUDA does by default, or sleeps. In a
// single cell both look alike if the job does all work in turn: half of the time on the CPU, half of it busy. But from
// cell to cell a spinning thread works more when the GPU does. A thread that decodes and then sleeps works less, apart
// from its waiting for storage. spin is a regression of the changes of the thread's work on the changes of the GPU's
// work and of the waiting. Old changes fade out.
type spin struct {
	dt, leading, busy, waited float64 // s, of the stretch that is not complete yet
	last                      point   // the previous stretch
	begun                     bool
	slept                     bool    // in the previous stretch, for too long to have been spinning
	xy, xx, zy, zz, xz        float64 // sums of products of changes: y of leading, x of busy, z of waited
	sum                       float64 // of both shares, a moving mean
	owed                      float64 // s of GPU work for which the thread is not known to have spun yet
}

// point has the shares of a stretch: work of the leading thread, work of the GPU, and waiting for storage.
type point struct{ leading, busy, waited float64 }

const (
	spinStretch = 0.05  // s, the shortest stretch; cells that end at the edges of windows may be shorter
	spinMemory  = 0.98  // weight of the previous stretches: about 50, five seconds
	spinSlope   = -0.35 // between -1 (sleeps) and +1 (spins); a thread that spins and decodes always works: 0
	spinFull    = 0.08  // distance from 1 of both shares together that looks like taking turns
	spinTurns   = 0.3   // in this case the smallest slope of spinning
	spinMin     = 0.5   // smallest share of the GPU's time that can be spinning: other threads may take its CPU
	spinLearn   = 0.5   // weight of a new stretch in that mean
	spinNoise   = 0.001 // squared changes below this are noise
	spinIdle    = 0.02  // share of the GPU's time below which work begins or ends, and both follow
	spinStep    = 0.2   // larger changes are cut to this: they are changes of phase
	spinLate    = 0.02  // s, the delay of a running thread's CPU time: several kernel ticks
)

// add adds a cell: the work of the leading thread and of the GPU, and the waiting for storage. All are seconds.
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
	s.last, s.begun, s.slept = now, true, now.leading < spinMin*now.busy
}

// spins reports whether the leading thread spins. Without evidence it is true: then the time is not counted as CPU work
// and stays without an explanation.
func (s *spin) spins() bool {
	limit := spinSlope
	if math.Abs(s.sum-1) < spinFull {
		limit = spinTurns
	}
	if s.slept {
		return false
	}
	slope, ok := s.slope()
	return !ok || slope > limit
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

// spun returns how much of the leading thread's work in a cell was spinning. The kernel reports a thread's time late,
// so that a part of it may be in the next cell.
func (s *spin) spun(leading, busy float64) float64 {
	spun := clamp(leading, 0, busy+s.owed)
	s.owed = clamp(s.owed+busy-spun, 0, spinLate)
	return spun
}
