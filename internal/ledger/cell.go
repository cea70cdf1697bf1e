package ledger

// cell is the evidence about one job on one GPU in a short stretch of time. All numbers are seconds.
type cell struct {
	dt   float64
	busy float64 // the GPU worked; zero without one

	period float64 // distance of the samples that busy is from; 0 if it is exact

	some           float64 // I/O pressure of the job's scope; see psiWait for why this is no wall time
	scopeCPU       float64 // core-seconds of work of everything in that scope
	queued         float64 // growth of the most loaded disk's weighted time
	iowait         float64 // core-seconds of idle time while a task of the core waited for I/O
	jobCPU         float64 // core-seconds of work of the job; without a job, of the busiest core
	starved        float64 // a thread was ready without a CPU: from CPU pressure of the job's scope, or its leading thread
	fetching       float64 // of jobCPU, in the kernel to fetch the job's data from storage
	leaderFetching float64 // of leading, the same
	leading        float64 // of jobCPU, of the thread that drives the GPU
	ready          float64 // that thread was ready and had no CPU
	queue          float64 // the job's own part of the weighted time of the disk that it read from
	onDisk         float64 // growth of that disk's weighted time, whichever process read

	reading float64 // thread-seconds of the job's other threads that fetch data
	working float64 // of reading, on a CPU or ready for one
	inReads float64 // thread-seconds of all threads asleep in reads of files without a local disk

	writing     bool    // a checkpoint is being flushed: its writer waits, whatever readers do
	overlap     float64 // of leading and ready, while the GPU worked
	spins       bool    // the leading thread is on a CPU while it waits for the GPU
	leaders     float64 // number of threads that lead, as in training on several GPUs; 0 if unknown
	hasGPU      bool
	hasPressure bool
	shared      bool // the scope contains other processes, whose work is in scopeCPU
	ofJob       bool // not the whole machine: queue is known
	between     bool // the job read nothing; onDisk is of the disk that it read from last
	cached      bool // most of what the job read was in the page cache
	ownIO       bool // the scope's waiting can be for the job's own I/O
}

// perLeader returns the cell of one of several leading threads, such as one process per GPU. Only their sum is known,
// so each gets an equal part.
func (c cell) perLeader() cell {
	if c.leaders > 1 {
		for _, sum := range []*float64{
			&c.jobCPU, &c.fetching, &c.leaderFetching, &c.leading, &c.ready, &c.reading, &c.working, &c.inReads, &c.queue,
		} {
			*sum /= c.leaders
		}
	}
	return c
}

// parts are how a cell's time is divided.
type parts struct {
	busy, storage, cpu float64 // at most dt together; the rest is idle time without an explanation
	gain               float64 // time that instant storage would have saved at least

	// Without storage, readers that read ahead would need less time by could, besides gain. The GPU waited for them for
	// room, besides gain.
	could, room float64
}

// add adds a share of other parts.
func (of *parts) add(more parts, share float64) {
	of.busy += more.busy * share
	of.storage += more.storage * share
	of.cpu += more.cpu * share
	of.gain += more.gain * share
	of.could += more.could * share
	of.room += more.room * share
}

// split divides a cell's time.
//
// What the leading thread did explains the idle time of the GPU, or without one all time. Its own work comes first: it
// is known best. While it slept, it waited for storage, for threads that read ahead, or for others that work for it, as
// a pool does. Threads of a pool also spin, so their work explains only what storage does not.
//
// If threads read ahead, the leading thread waits for the one with the next batch. That thread is in each state as
// likely as it spends time in it, so the time is divided in proportion to the readers' time.
//
// A thread that is ready to work and has no CPU is bound by the CPU, like one that works.
//
// The kernel's work to fetch a block (submission, interrupt, wake-up) is a part of the block's cost: about ten
// microseconds each, a quarter of the whole on a fast disk. It counts as storage, because it would also disappear with
// the data in memory.
func (c cell) split() parts {
	if c.dt <= 0 {
		return parts{}
	}
	fetching := clamp(c.fetching, 0, max(0, c.jobCPU))
	if !c.readsAhead() || c.writing {
		if c.leaders > 0 {
			fetching = min(fetching, max(0, c.leaderFetching)) // the rest is a pool's
		}
		return c.splitSerial(min(c.dt, c.waited()+fetching), fetching)
	}
	if !c.hasGPU {
		fetching = min(fetching, max(0, c.working))
	}
	return c.splitAhead(min(c.dt, c.waited()+fetching), fetching)
}

// worked is how long the GPU worked.
func (c cell) worked() float64 {
	if !c.hasGPU {
		return 0
	}
	return clamp(c.busy, 0, c.dt)
}

// own is how long the leading thread worked or was ready to while the GPU was idle. Without knowledge of threads it is
// unknown with a GPU, and otherwise the work of the whole job.
func (c cell) own(fetching float64) float64 {
	runnable := c.leading + c.ready
	switch {
	case c.leaders == 0 && c.hasGPU:
		return 0
	case c.leaders == 0:
		runnable = c.jobCPU - fetching
	case !c.readsAhead():
		runnable -= fetching + c.wokenByDisk()
	}
	return clamp(runnable-c.overlap, 0, c.dt-c.worked())
}

// wokenByDisk is how long a thread that does all work in turn was ready after a disk had woken it: for as much of the
// time as it waited for storage, and did not work. A thread that no disk wakes up has its CPU at once.
func (c cell) wokenByDisk() float64 {
	waited := c.waited()
	if waited <= 0 || c.leaders == 0 {
		return 0
	}
	return c.ready * waited / (waited + max(0, c.leading))
}

// others is how many core-seconds threads besides the leading one worked, and how long one had no CPU.
func (c cell) others(fetching float64) (working, starved float64) {
	if c.leaders == 0 && !c.hasGPU {
		return 0, 0 // own has the work of all
	}
	working = max(0, c.jobCPU-c.leading-fetching)
	if !c.hasGPU {
		return working, 0
	}
	// A spinning thread takes a CPU from others, while the GPU works.
	return working, max(0, c.starved-max(c.ready, c.overlap))
}

// splitSerial divides the time of a thread that does all work in turn, or of one that writes a checkpoint.
func (c cell) splitSerial(waited, fetching float64) parts {
	busy, own := c.worked(), c.own(fetching)
	asleep := c.dt - busy - own
	storage := min(asleep, waited+c.wokenByDisk())
	working, starved := c.others(fetching)
	cpu := own + min(asleep-storage, working+starved)
	return parts{busy: busy, storage: storage, cpu: cpu, gain: storage}
}

// Readers that wait or work for up to idling of their time delay nothing. From saturated on they are the bottleneck.
// Batches are handed over in order, so some readers sleep at times although all of them are needed.
const idling, saturated = 0.3, 0.7

// turns is the largest ratio of a single reader's waiting and working to the idle time at which it takes turns with the
// GPU. A thread that reads ahead also does so while the GPU works.
const turns = 1.1

// splitAhead divides the time with threads that read ahead.
func (c cell) splitAhead(waited, fetching float64) parts {
	busy, own := c.worked(), c.own(fetching)
	asleep := c.dt - busy - own
	working, starved := c.others(fetching)
	if !c.hasGPU {
		working = 0 // the pool of the leading thread
	}
	working = max(working, c.working-fetching)
	blocked := c.readersWaited(waited, fetching)
	if blocked+working <= 0 {
		return parts{busy: busy, cpu: own}
	}
	explained := min(asleep, waited+working+starved)
	// Readers with a full buffer sleep and delay nothing. Then the GPU is idle for another cause, whatever they do in the
	// rest of their time.
	needed := c.needed(asleep)
	explained *= clamp(((blocked+working)/needed-idling)/(saturated-idling), 0, 1)
	share := blocked / (blocked + working)
	storage := min(waited, explained*share)
	// Readers that sleep without a known cause leave the same share of the idle time without an explanation.
	cpu := min(explained-storage, asleep*working/max(needed, working))
	p := parts{busy: busy, storage: storage, cpu: own + cpu, gain: storage}
	if needed >= c.reading || blocked+working >= turns*(c.dt-busy) {
		// Without storage the readers would need the rest of their time for the same work, and the GPU and the leading
		// thread their own.
		p.could, p.room = max(0, c.dt*share-storage), explained-storage
	}
	return p
}

// needed is how many thread-seconds the readers would have worked and waited, had they been the bottleneck all the
// time. A single reader may also be the thread that computes. It sleeps while the GPU works.
func (c cell) needed(idle float64) float64 {
	if c.reading < 1.5*c.dt {
		return max(c.reading*idle/c.dt, 1e-9)
	}
	return c.reading
}

// readsAhead reports whether threads besides the leading one read, for at least half of the cell.
func (c cell) readsAhead() bool { return c.reading >= c.dt/2 }

func clamp(v, low, high float64) float64 { return max(low, min(v, high)) }
