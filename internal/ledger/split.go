package ledger

import "math"

// cell is what was seen of one job on one GPU in a short stretch of time. All numbers are seconds.
type cell struct {
	dt   float64
	busy float64 // the accelerator worked; zero without one

	some     float64 // I/O pressure of the job's scope; see waited for why this is no wall time
	scopeCPU float64 // core-seconds worked by everything in that scope
	queued   float64 // growth of the most loaded disk's weighted time
	iowait   float64 // core-seconds of idling while a task of the core waited for I/O
	jobCPU   float64 // core-seconds worked by the job; without a job, the busiest core's
	starved  float64 // somebody of the job was ready and found no CPU free: CPU pressure of its own scope, or its leading thread
	fetching float64 // of jobCPU, in the kernel to fetch the job's data from storage
	leading  float64 // of jobCPU, by the thread that drives the accelerator
	ready    float64 // that thread was ready and found no CPU free
	queue    float64 // the job's own part of the weighted time of the disk that it read from
	onDisk   float64 // growth of all of that, whoever's reads it was

	reading float64 // thread-seconds of the job's other threads that fetch data
	working float64 // of reading, on a CPU or ready for one
	inReads float64 // thread-seconds of all of them, asleep in reads of files that are on no disk of this machine

	writing     bool    // a checkpoint is on its way to the disk: it is its writer that waits, whatever readers do
	spun        float64 // of leading (and of ready, where that thread does all in turn), only to wait for the accelerator
	spins       bool    // the leading thread does so
	leaders     float64 // how many threads lead, as in training on several GPUs; 0 where that is not told
	hasGPU      bool
	hasPressure bool
	shared      bool // the scope holds others too, whose work is in scopeCPU
	ofJob       bool // and not of the whole machine: queue is told
	between     bool // the job read nothing, and onDisk is of the disk that it read from last
	cached      bool // most of what the job read lay in the page cache
	mine        bool // what was waited for in the scope can have been the job's own I/O
}

// each is the cell of one of several threads that lead, as one process a GPU has it: what is known of all of them
// together, in equal parts.
func (c cell) each() cell {
	if c.leaders > 1 {
		for _, all := range []*float64{&c.jobCPU, &c.fetching, &c.leading, &c.ready, &c.reading, &c.working, &c.inReads, &c.queue} {
			*all /= c.leaders
		}
	}
	return c
}

// parts is how a cell's time was divided.
type parts struct {
	busy, storage, cpu float64 // never more than dt together; what is left is idle for a cause not seen
	gain               float64 // what would not have passed, had storage been instant
}

// split divides a cell's time.
//
// The accelerator's idle time is the job's to explain. Where one thread does all in turn, it waited for storage, then
// worked, then computed: stalls and idleness coincide, which is why the smaller of the two is taken and not their
// product. Where threads read ahead, the accelerator waits for the one whose batch is next, and that one was as likely
// to be found in either state as the time it spends in it: what idle time is explained is divided as the readers' own
// time is.
//
// An input pipeline that is ready to work and finds no CPU free is bound by the CPU as one that works is. A thread that
// spins while the accelerator works does not work for it.
//
// What the kernel works to fetch a block (submission, interrupt, wake-up) is part of what the block costs: about ten
// microseconds each, a quarter of the whole on a fast disk. It is counted as storage, for it too is gone when the data
// lie in memory.
func (c cell) split() parts {
	if c.dt <= 0 {
		return parts{}
	}
	fetching := clamp(c.fetching, 0, max(0, c.jobCPU))
	waited := min(c.dt, c.waited()+fetching)
	if !c.hasGPU {
		cpu := clamp(c.jobCPU-fetching, 0, c.dt)
		storage := min(c.dt-cpu, waited)
		return parts{storage: storage, cpu: cpu, gain: storage}
	}
	busy := clamp(c.busy, 0, c.dt)
	idle := c.dt - busy
	working := max(0, c.jobCPU-fetching-c.spun)
	starved := max(0, c.starved-c.spun) // who spins takes a CPU from others, while the accelerator works
	if !c.ahead() {                     // or is the one that has none, and would have spun
		working = max(0, c.jobCPU+c.ready-fetching-c.spun)
		starved = max(0, c.starved-max(c.ready, c.spun))
	}
	explained := min(idle, waited+working+starved)
	if !c.ahead() || c.writing {
		storage, gain := min(idle, waited), 0.0
		if waited > 0 { // who is not woken up by a disk finds its CPU at once
			gain = min(explained-storage, c.ready*waited/(waited+working))
		}
		return parts{busy, storage, explained - storage, storage + gain}
	}
	blocked := c.blocked(waited, fetching)
	working = max(working, c.working-fetching)
	if blocked+working <= 0 {
		return parts{busy: busy}
	}
	// Readers that find their buffer full sleep, and keep nobody waiting: then it is another cause that the accelerator
	// idles for, whatever they do in the rest of their time.
	needed := c.needed(idle)
	explained *= clamp(((blocked+working)/needed-idling)/(saturated-idling), 0, 1)
	share := blocked / (blocked + working)
	storage := min(waited, explained*share)
	// Readers that sleep without a known cause leave as much of the idle time unexplained.
	cpu := min(explained-storage, idle*working/max(needed, working))
	if needed < c.reading && blocked+working < turns*idle {
		return parts{busy, storage, cpu, storage}
	}
	// Without storage the readers would need the rest of their time for as much, and the accelerator its own.
	return parts{busy, storage, cpu, max(storage, min(explained, c.dt*share))}
}

// blocked is for how many thread-seconds the threads that read ahead waited for storage.
//
// No counter tells how many of them waited at once: at least one did for the time waited, at most all that did not
// work. The job's part of the disk's queue lies in between, but holds what the kernel reads ahead, too. A queue that is
// shorter than what was waited shows another disk, or none: what is throttled, or comes over a network, is in no queue.
func (c cell) blocked(waited, fetching float64) float64 {
	asleep := c.asleep()
	if c.inReads > 0 {
		return min(c.inReads, asleep) + fetching
	}
	if c.queue < waited/2 {
		return asleep*min(1, waited/c.dt) + fetching
	}
	return min(max(c.queue, waited-fetching), asleep) + fetching
}

// Up to idling, as a share of their time, readers that wait or work are taken to keep nobody waiting, and from
// saturated on to be what is waited for. Batches are handed over in order, so that some of them sleep at times although
// all are needed.
const idling, saturated = 0.3, 0.7

// turns is to how much of the idle time a single reader that waits and works takes turns with the accelerator. One that
// reads ahead does so while that works.
const turns = 1.1

// needed is how many thread-seconds the readers would have worked and waited, had they been what was waited for all the
// time. A single one may be the thread that computes, too, and then sleeps while the accelerator works.
func (c cell) needed(idle float64) float64 {
	if c.reading < 1.5*c.dt {
		return max(c.reading*idle/c.dt, 1e-9)
	}
	return c.reading
}

// ahead says that threads besides the leading one read, for at least half of the cell.
func (c cell) ahead() bool { return c.reading >= c.dt/2 }

// asleep is for how many thread-seconds those who read did not work, nor were ready to: they may have waited for
// storage. Without threads that read ahead it is the leading one that reads, when it does not compute.
func (c cell) asleep() float64 {
	if c.ahead() {
		return max(0, c.reading-c.working)
	}
	working, computing := c.leading+c.ready, 0.0
	if c.leaders == 0 { // a kernel that tells nothing of threads
		working = c.jobCPU
	}
	if !c.spins {
		computing = clamp(c.busy, 0, c.dt)
	}
	return max(0, c.dt-working-computing)
}

// waited is the wall time in which the job waited for storage: what pressure shows, or, where that is more, the job's
// own part of the disk's queue, as far as those slept who read. The queue alone would count what the kernel reads ahead
// while the reader works; pressure misses asynchronous reads. What comes over a network past the page cache shows in
// neither.
//
// Pressure is also thin for a thread that wakes up on another CPU each time: as if two had waited for half of the time
// each. The idle time that cores spent waiting for I/O is not, but others' waiting is in it too. So it is believed to
// twice what pressure shows.
func (c cell) waited() float64 {
	asleep := c.asleep()
	if !c.mine {
		return clamp(min(c.inReads, asleep), 0, c.dt)
	}
	all := c.pressed()
	pressed := c.ownPressed(all, asleep)
	queue, thin := min(c.queue, asleep), min(c.thin(asleep), 2*pressed)
	if c.shared && c.queue > 0 && c.queued >= all && c.onDisk < all {
		thin = 0 // another disk is what cores idled for
	}
	if !c.hasPressure && !c.ofJob { // nobody's in particular
		queue = c.queued
	}
	return clamp(max(pressed, queue, thin, min(c.inReads, asleep)), 0, c.dt)
}

// inTurn is for how long the leading thread may itself have waited for storage, because nobody reads ahead of it.
func (c cell) inTurn() float64 {
	if c.ahead() || !c.mine {
		return 0
	}
	return clamp(max(c.pressed(), c.queue, c.inReads), 0, c.dt)
}

// runnable is for how long the leading thread was on a CPU, or, where it does everything itself, ready for one.
func (c cell) runnable() float64 {
	if c.ahead() {
		return c.leading
	}
	return c.leading + c.ready
}

// thin is for how long at most the job can have waited of what pressure shows thinly. Where the accelerator does
// nothing at all and one thread reads, as in a load, there is nothing else that it would sleep for in between;
// elsewhere there is.
func (c cell) thin(asleep float64) float64 {
	if c.hasGPU && c.busy == 0 && c.leaders > 0 && !c.ahead() {
		return asleep
	}
	return min(c.iowait, asleep)
}

// ownPressed is what of the pressure can be the job's: where one thread does all in turn, as in a load, no more than
// that slept, though others of its cgroup waited too. In a scope that it shares, it is no more than its threads slept.
// While no read of the job ends, it is no more than its disk had to do at all; of a job that reads from memory and only
// now and then from a disk, and where a busier disk explains the pressure, no more than its own part of its disk's
// queue.
func (c cell) ownPressed(pressed, asleep float64) float64 {
	if c.leaders > 0 && (c.shared || c.busy == 0 && !c.ahead()) {
		pressed = min(pressed, asleep)
	}
	switch {
	case !c.shared:
		return pressed
	case c.between:
		return min(pressed, c.onDisk)
	case c.cached && !c.writing, c.queue > 0 && c.queued >= pressed:
		return min(pressed, c.queue)
	}
	return pressed
}

// pressed is the wall time in which somebody in the job's scope waited for storage, as pressure has it.
//
// PSI averages a state over CPUs, each weighted by the time it was not idle. Let a reader wait w of a cell on one CPU
// and work r on it, and let everything else in the scope work v on other CPUs: then S, the share of some, is
// w(w+r)/(w+r+v). One reader that always waits shows 1 alone, and 1/2 beside one busy CPU.
//
// In the scope of the whole machine the job's own work r is known, v is the rest, and w is the root of that equation.
// In a cgroup of the job's own r and v are only known together; the reader's CPU is then taken as never idle (w+r = 1),
// which gives w = Su/(1-S) with u = r+v and errs on the low side. Either way w is at least S, and more than one CPU's
// worth of waiting is still only the wall clock's time.
func (c cell) pressed() float64 {
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

func clamp(v, low, high float64) float64 { return max(low, min(v, high)) }
