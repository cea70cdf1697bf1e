package ledger

import "math"

// waited is the wall time in which the job waited for storage. It is the largest of four estimates:
//   - What pressure shows. It misses asynchronous reads. It is also too low for a thread that wakes up on another CPU
//     each time: it looks as if two threads had waited for half of the time each.
//   - The job's own part of the disk's queue. This includes what the kernel reads ahead while the reader works.
//   - The time that cores idled for I/O. It has no such error as pressure, but it includes the waiting of other
//     processes, so it counts up to twice what pressure shows.
//   - The time in reads of files without a local disk. Such reads, over a network and past the page cache, show neither
//     in pressure nor in a queue.
//
// Except for pressure, each counts up to the time that the reading threads slept. Without a job, the queue is that of
// the most loaded disk, and counts in full.
func (c cell) waited() float64 {
	asleep := c.asleep()
	if !c.ownIO {
		return clamp(min(c.inReads, asleep), 0, c.dt)
	}
	all := c.psiWait()
	own := c.ownPSIWait(all, asleep)
	queue, idled := min(c.queue, asleep), min(c.maxIdled(asleep), 2*own)
	if c.shared && c.queue > 0 && c.queued >= all && c.onDisk < all {
		idled = 0 // cores idled for another disk
	}
	if !c.hasPressure && !c.ofJob { // of no particular job
		queue = c.queued
	}
	return clamp(max(own, queue, idled, min(c.inReads, asleep)), 0, c.dt)
}

// leaderWaited is how long the leading thread may itself have waited for storage, because no thread reads ahead of it,
// or because it writes.
func (c cell) leaderWaited() float64 {
	if c.readsAhead() && !c.writing || !c.ownIO {
		return 0
	}
	return clamp(max(c.psiWait(), c.queue, c.inReads), 0, c.dt)
}

// readersWaited is how many thread-seconds the threads that read ahead waited for storage.
//
// No counter has how many of them waited at once. At least one did for the time waited, at most all that did not work.
// The job's part of the disk's queue is in between, but includes what the kernel reads ahead. A queue that is shorter
// than the time waited shows another disk, or none: throttled I/O and I/O over a network is in no queue.
func (c cell) readersWaited(waited, fetching float64) float64 {
	asleep := c.asleep()
	if c.inReads > 0 {
		return min(c.inReads, asleep) + fetching
	}
	if c.queue < waited/2 {
		return asleep*min(1, waited/c.dt) + fetching
	}
	return min(max(c.queue, waited-fetching), asleep) + fetching
}

// asleep is how many thread-seconds the reading threads neither worked nor were ready to. They may have waited for
// storage. If no thread reads ahead, the leading thread reads when it does not compute.
func (c cell) asleep() float64 {
	if c.readsAhead() {
		return max(0, c.reading-c.working)
	}
	working, computing := c.leading+c.ready, 0.0
	if c.leaders == 0 { // the kernel reports nothing about threads
		working = c.jobCPU
	}
	if !c.spins {
		computing = clamp(c.busy, 0, c.dt)
	}
	return max(0, c.dt-working-computing)
}

// maxIdled is the longest time that the job can have waited while pressure shows less. If the GPU does nothing and one
// thread reads, as in a load, the thread has no other reason to sleep. Otherwise it has.
func (c cell) maxIdled(asleep float64) float64 {
	if c.hasGPU && c.busy == 0 && c.leaders > 0 && !c.readsAhead() {
		return asleep
	}
	return min(c.iowait, asleep)
}

// ownPSIWait is the part of the scope's waiting that can be the job's:
//   - If one thread does all work in turn, as in a load, at most the time that it slept, though other processes of its
//     cgroup waited too. The same holds in a shared scope.
//   - While no read of the job ends, at most the time that its disk had any work.
//   - If the job reads mostly from memory, or if a busier disk explains the pressure, at most its own part of its
//     disk's queue.
func (c cell) ownPSIWait(wait, asleep float64) float64 {
	if c.leaders > 0 && (c.shared || c.busy == 0 && !c.readsAhead()) {
		wait = min(wait, asleep)
	}
	switch {
	case !c.shared:
		return wait
	case c.between:
		return min(wait, c.onDisk)
	case c.cached && !c.writing, c.queue > 0 && c.queued >= wait:
		return min(wait, c.queue)
	}
	return wait
}

// psiWait is the wall time in which some task of the job's scope waited for storage, computed from pressure.
//
// PSI averages a state over CPUs, each weighted by the time it was not idle. Let a reader wait w of a cell on one CPU
// and work r on it, and let everything else in the scope work v on other CPUs. Then the share of some is S =
// w(w+r)/(w+r+v). One reader that always waits shows 1 alone, and 1/2 in parallel with one busy CPU.
//
// In the scope of the whole machine the job's own work r is known, v is the rest, and w is the root of that equation.
// In the job's own cgroup only u = r+v is known. The formula then assumes that the reader's CPU is never idle (w+r =
// 1). This gives w = Su/(1-S), which is rather too low. In both cases w is at least S, and waiting on more than one CPU
// is still at most the wall clock's time.
func (c cell) psiWait() float64 {
	if !c.hasPressure {
		return 0
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
