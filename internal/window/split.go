package window

import "math"

// cell is what was seen of one job on one GPU in a short stretch of time. All numbers are seconds.
type cell struct {
	dt   float64
	busy float64 // the accelerator worked; zero without one

	some     float64 // I/O pressure of the job's scope; see waited for why this is no wall time
	scopeCPU float64 // core-seconds worked by everything in that scope
	queued   float64 // growth of the most loaded disk's weighted time, for kernels without PSI
	jobCPU   float64 // core-seconds worked by the job; without a job, the busiest core's
	starved  float64 // CPU pressure of the job's own scope: somebody in it was ready and found no CPU free
	fetching float64 // of jobCPU, in the kernel to fetch the job's data from storage

	hasGPU      bool
	hasPressure bool
	shared      bool // the scope holds others too, whose work is in scopeCPU
	mine        bool // what was waited for in the scope can have been the job's own I/O
}

// split divides a cell's time. busy+storage+cpu never exceeds dt; what is left is idle for a cause not seen.
//
// The accelerator's idle time is the job's to explain. Waiting for storage comes first, because a job that waits for
// a disk uses no processor; what storage leaves may be the processor's. Stalls and idleness coincide (the loader
// stalls, so the accelerator idles), which is why the smaller of the two is taken and not their product.
//
// An input pipeline that is ready to work and finds no CPU free is bound by the CPU as one that works is.
//
// What the kernel works to fetch a block (submission, interrupt, wake-up) is part of what the block costs: about ten
// microseconds each, a quarter of the whole on a fast disk. It is counted as storage, for it too is gone when the data
// lie in memory.
func (c cell) split() (busy, storage, cpu float64) {
	if c.dt <= 0 {
		return 0, 0, 0
	}
	fetching := clamp(c.fetching, 0, max(0, c.jobCPU))
	working := c.jobCPU - fetching
	if !c.hasGPU {
		cpu = clamp(working, 0, c.dt)
		return 0, min(c.dt-cpu, c.waited()+fetching), cpu
	}
	busy = clamp(c.busy, 0, c.dt)
	idle := c.dt - busy
	storage = min(idle, c.waited()+fetching)
	return busy, storage, clamp(working+c.starved, 0, idle-storage)
}

// waited is the wall time in which the job waited for storage.
//
// PSI averages a state over CPUs, each weighted by the time it was not idle. Let a reader wait w of a cell on one CPU
// and work r on it, and let everything else in the scope work v on other CPUs: then S, the share of some, is
// w(w+r)/(w+r+v). One reader that always waits shows 1 alone, and 1/2 beside one busy CPU.
//
// In the scope of the whole machine the job's own work r is known, v is the rest, and w is the root of that equation.
// In a cgroup of the job's own r and v are only known together; the reader's CPU is then taken as never idle (w+r = 1),
// which gives w = Su/(1-S) with u = r+v and errs on the low side. Either way w is at least S, and more than one CPU's
// worth of waiting is still only the wall clock's time.
func (c cell) waited() float64 {
	if !c.mine {
		return 0
	}
	if !c.hasPressure {
		return clamp(c.queued, 0, c.dt)
	}
	share, u := clamp(c.some/c.dt, 0, 1), max(0, c.scopeCPU/c.dt)
	if share == 1 {
		return c.dt
	}
	w := share * u / (1 - share)
	if c.shared {
		r := clamp(c.jobCPU/c.dt, 0, u)
		w = (share - r + math.Sqrt((share-r)*(share-r)+4*share*u)) / 2
	}
	return clamp(w, share, 1) * c.dt
}

func clamp(v, low, high float64) float64 { return max(low, min(v, high)) }
