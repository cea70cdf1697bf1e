package ledger

import (
	"math"
	"time"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/sample"
)

// levels are the counters that a time is estimated by where nothing is known of its threads, at one moment.
type levels struct {
	busy, some, cpuSome, hostCPU, busiestCore, queued float64 // s
	jobCPU                                            float64 // core-s
	system                                            float64 // of jobCPU, in the kernel
	fetched, stored, chars                            float64 // bytes: read, read or written, and returned by read calls
	hasSome, hasGPU                                   bool
}

// read returns the levels at a moment. It looks up each group of columns once: lookups are most of what an estimate
// costs.
func (a *account) read(h *history.History, p history.Point) (l levels) {
	var two [2]float64
	h.Levels(history.HostCPUTime, "", p, two[:])
	l.hostCPU, l.busiestCore = two[0], two[1]
	h.Levels(history.DisksBytes, "", p, two[:])
	l.queued = two[1]
	var one [1]float64
	l.hasSome = h.Levels(history.IOSome, a.target.Pressure, p, one[:])
	l.some = one[0]
	h.Levels(history.CPUSome, a.target.Pressure, p, one[:])
	l.cpuSome = one[0]
	if a.target.GPU != "" {
		l.hasGPU = h.Levels(history.GPUBusyTime, a.target.GPU, p, one[:])
		l.busy = one[0]
	}
	if a.target.Job == "" {
		return l
	}
	var counters [history.JobSystemTime - history.JobCPUTime + 1]float64
	h.Levels(history.JobCPUTime, a.target.Job, p, counters[:])
	of := func(s history.Series) float64 { return counters[s-history.JobCPUTime] }
	l.jobCPU, l.system = of(history.JobCPUTime), of(history.JobSystemTime)
	l.fetched, l.chars = of(history.JobReadBytes), of(history.JobReadChars)
	l.stored = l.fetched + of(history.JobWriteBytes)
	return l
}

// ownIO reports whether the job itself moved data between two moments that it may have waited for.
func (l levels) ownIO(now levels) bool {
	fetched := now.fetched - l.fetched
	return fetched > 0 || now.stored-l.stored-fetched > maxLogBytes
}

// cell is what the counters say of one target in a short stretch of time. All numbers are seconds.
type cell struct {
	dt       float64
	busy     float64 // the GPU worked
	some     float64 // I/O pressure of the target's scope; see psiWait for why this is no wall time
	scopeCPU float64 // core-seconds of work of everything in that scope
	jobCPU   float64 // core-seconds of work of the job; without a job, of the busiest core
	fetching float64 // of jobCPU, in the kernel to fetch the job's data: a part of what a block costs
	starved  float64 // a thread of the job's own scope was ready without a CPU
	queue    float64 // growth of the weighted time of a disk: the job's part, or all of the most loaded one without PSI

	hasGPU      bool
	hasPressure bool
	shared      bool // the scope contains other processes, whose work is in scopeCPU
	ownIO       bool // the scope's waiting can be for the target's own I/O
}

// cell returns the evidence from the end of the last cell to p.
func (a *account) cell(h *history.History, p history.Point) cell {
	was, now, t := a.read(h, a.end), a.read(h, p), &a.target
	c := cell{
		dt:          (p.At - a.end.At).Seconds(),
		some:        now.some - was.some,
		scopeCPU:    now.hostCPU - was.hostCPU,
		jobCPU:      now.busiestCore - was.busiestCore,
		queue:       now.queued - was.queued,
		hasGPU:      t.GPU != "",
		hasPressure: now.hasSome,
		shared:      t.Job != "" && !t.Own,
		ownIO:       true,
	}
	if was.hasGPU && now.hasGPU {
		c.busy = now.busy - was.busy
	}
	if t.Job == "" {
		return c
	}
	c.jobCPU = now.jobCPU - was.jobCPU
	if t.Pressure != sample.HostScope {
		c.scopeCPU = c.jobCPU // of a shared cgroup only the job's part is known
	}
	if t.Own {
		c.starved = now.cpuSome - was.cpuSome
	}
	if was.ownIO(now) {
		a.lastIO = p.At
	}
	c.ownIO = t.Own || a.lastIO > 0 && p.At-a.lastIO <= sharedIOTime
	fetched := now.fetched - was.fetched
	if read := max(fetched, now.chars-was.chars); read > 0 { // mapped files are fetched without a read call
		c.fetching = (now.system - was.system) * fetched / read
	}
	c.queue = ownQueue(h, a.end, p, fetched)
	return c
}

// ownQueue returns how long a job's reads of fetched bytes were in flight on the disk that it read from, summed over
// reads: its part of the disk's weighted time, by bytes. No counter has the disk of a read. It is one that read about
// as much or more in the same time. Of several it is the one with the least to do, so that a busy disk of other jobs is
// not charged to this one. It is 0 without such a disk.
func ownQueue(h *history.History, from, to history.Point, fetched float64) float64 {
	if fetched <= 0 {
		return 0
	}
	shortest := math.Inf(1)
	h.EachDisk(from, to, func(_ string, read, moved, weighted float64) {
		if read >= ownDisk*fetched {
			shortest = min(shortest, weighted*min(1, fetched/moved))
		}
	})
	if math.IsInf(shortest, 1) {
		return 0
	}
	return shortest
}

// parts are how a time is divided.
type parts struct {
	busy, storage, cpu float64 // s; what is left is idle time without an explanation
	gain               float64 // s that instant storage would have saved at least
}

// add adds a share of other parts.
func (of *parts) add(more parts, share float64) {
	of.busy += more.busy * share
	of.storage += more.storage * share
	of.cpu += more.cpu * share
	of.gain += more.gain * share
}

// split divides a cell's time. With a GPU, waiting for storage comes first: threads of a pool spin, so that their work
// explains only what storage does not. Without one, a job's work is what is known best.
func (c cell) split() parts {
	if c.dt <= 0 {
		return parts{}
	}
	fetching := clamp(c.fetching, 0, max(0, c.jobCPU))
	busy, work := clamp(c.busy, 0, c.dt), max(0, c.jobCPU)-fetching
	idle, storage := c.dt-busy, c.waited()+fetching
	if c.hasGPU {
		work = max(0, work-busy) // it may spin while the GPU works
		storage = min(idle, storage)
	} else {
		storage = min(max(0, idle-work), storage)
	}
	cpu := min(idle-storage, work+max(0, c.starved))
	return parts{busy: busy, storage: storage, cpu: cpu, gain: storage}
}

// waited is the wall time in which the target waited for storage.
func (c cell) waited() float64 {
	switch {
	case !c.ownIO:
		return 0
	case !c.hasPressure:
		return clamp(c.queue, 0, c.dt)
	case c.shared && c.queue > 0: // others of the machine wait, too
		return min(c.psiWait(), c.queue)
	}
	return c.psiWait()
}

// psiWait is the wall time in which some task of the scope waited for storage, computed from pressure.
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

// seconds rounds to the nanosecond.
func seconds(s float64) time.Duration { return time.Duration(math.Round(s * float64(time.Second))) }
