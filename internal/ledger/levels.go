package ledger

import (
	"math"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/sample"
)

// levels is how high every counter that a ledger needs stands at one moment.
type levels struct {
	busy, some, hostCPU, pegged, jobCPU, queued          float64 // s
	cpuSome                                              float64 // s, CPU pressure
	iowait                                               float64 // core-s
	system                                               float64 // of jobCPU, in the kernel
	fetched                                              float64 // bytes the job fetched from storage
	stored                                               float64 // bytes the job fetched from or sent to storage
	asked                                                float64 // bytes the job read by calls, from the page cache too
	disks                                                float64 // bytes that all leaf disks moved
	led, leading, leaderReady, reading, working, inReads float64 // s of single threads, see sample.Job
	hasSome, hasGPU, hasJob                              bool
}

func (a *account) read(h *history.History, p history.Point) levels {
	var l levels
	get := func(s history.Series, id string) float64 {
		v, _ := h.Level(history.Key{Series: s, ID: id}, p)
		return v
	}
	l.some, l.hasSome = h.Level(history.Key{Series: history.IOSome, ID: a.target.Pressure}, p)
	l.cpuSome = get(history.CPUSome, a.target.Pressure)
	if a.target.GPU != "" {
		l.busy, l.hasGPU = h.Level(history.Key{Series: history.GPUBusyTime, ID: a.target.GPU}, p)
	}
	l.hostCPU = get(history.HostCPUTime, "")
	l.pegged = get(history.HostPegged, "")
	l.iowait = get(history.HostIOWait, "")
	l.queued = get(history.DisksQueued, "")
	l.disks = get(history.DisksBytes, "")
	if a.target.Job != "" {
		l.jobCPU, l.hasJob = h.Level(history.Key{Series: history.JobCPUTime, ID: a.target.Job}, p)
		l.system = get(history.JobSystemTime, a.target.Job)
		l.fetched = get(history.JobReadBytes, a.target.Job)
		l.stored = l.fetched + get(history.JobWriteBytes, a.target.Job)
		l.asked = get(history.JobReadChars, a.target.Job)
		l.led = get(history.JobLeaders, a.target.Job)
		l.leading = get(history.JobLeaderTime, a.target.Job)
		l.leaderReady = get(history.JobLeaderReady, a.target.Job)
		l.reading = get(history.JobReaderTime, a.target.Job)
		l.working = get(history.JobReaderWork, a.target.Job)
		l.inReads = get(history.JobInReads, a.target.Job)
	}
	return l
}

// copyCost is what the kernel works, in seconds a byte, to hand over what lies in the page cache already: about 5 GB/s.
// That part of the system time stays when the data lie in memory.
const copyCost = 0.2e-9

// until is the cell between two moments that lie dt seconds apart.
func (l levels) until(now levels, dt float64, s Target) cell {
	c := cell{
		dt:          dt,
		some:        now.some - l.some,
		scopeCPU:    now.hostCPU - l.hostCPU,
		queued:      now.queued - l.queued,
		iowait:      now.iowait - l.iowait,
		jobCPU:      now.pegged - l.pegged,
		hasGPU:      s.GPU != "",
		hasPressure: now.hasSome,
		shared:      s.Pressure == sample.HostScope && s.Job != "",
		ofJob:       s.Job != "",
		mine:        true,
	}
	if l.hasGPU && now.hasGPU {
		c.busy = now.busy - l.busy
	}
	if s.Job != "" {
		c.leading, c.ready = now.leading-l.leading, now.leaderReady-l.leaderReady
		c.reading, c.working = now.reading-l.reading, now.working-l.working
		c.inReads = now.inReads - l.inReads
		c.leaders = (now.led - l.led) / dt
		c.jobCPU = now.jobCPU - l.jobCPU
		c.cached = l.cached(now) && !s.Remote
		c.fetching = max(0, (now.system-l.system)*l.fetchedShare(now)-(now.fetched-l.fetched)*copyCost)
	}
	c.starved = c.ready
	if s.Own {
		c.starved = max(c.starved, now.cpuSome-l.cpuSome)
	}
	if s.Pressure != sample.HostScope {
		c.scopeCPU = c.jobCPU // of a cgroup that it shares, the job's part is what is known
	}
	return c
}

// ownQueue is for how long a job's reads of so many bytes were under way on the disk that it read from, summed over
// them: its part of that disk's weighted time, by bytes; onDisk is all of it. Which disk that is, is told by nothing:
// one that read about as much or more in the same time, and of several the one with the least to do, so that a busy
// disk of others is not charged to it. disk is "" where there is none.
func ownQueue(h *history.History, from, to history.Point, fetched float64) (queue, onDisk float64, disk string) {
	least := math.Inf(1)
	h.EachDisk(from, to, func(id string, read, moved, weighted float64) {
		own := weighted * min(1, fetched/moved)
		if read >= fetched/2 && own < least { // bytes are counted when reads are begun, and the disk's when they are complete
			least, onDisk, disk = own, weighted, id
		}
	})
	if disk == "" {
		return 0, 0, ""
	}
	return least, onDisk, disk
}

// weighted is by how much a disk's weighted time grew.
func weighted(h *history.History, disk string, from, to history.Point) float64 {
	key := history.Key{Series: history.DiskTimeInQueue, ID: disk}
	before, known := h.Level(key, from)
	after, still := h.Level(key, to)
	if !known || !still {
		return 0
	}
	return max(0, after-before)
}

// checkpointBytes is from how many bytes in a cell on a job is taken to write a checkpoint, and not a log.
const checkpointBytes = 1 << 20

// wrote says that the job mostly wrote between two moments, and much.
func (l levels) wrote(now levels) bool {
	fetched := now.fetched - l.fetched
	wrote := now.stored - l.stored - fetched
	return wrote >= checkpointBytes && wrote > fetched
}

// fetchedShare is how much of what the job read between two moments came from storage and not from the page cache.
func (l levels) fetchedShare(now levels) float64 {
	fetched, asked := now.fetched-l.fetched, now.asked-l.asked
	if fetched <= 0 {
		return 0
	}
	return min(1, fetched/max(fetched, asked)) // mapped files are fetched without being asked for
}

// logBytes is up to how many bytes, written in a cell, a job is taken to write a log: nobody waits for that.
const logBytes = 64 << 10

// cached says that of what the job read between two moments by calls, most lay in the page cache.
func (l levels) cached(now levels) bool { return now.fetched-l.fetched < (now.asked-l.asked)/4 }

// ownIO says whether the job moved data itself between two moments, and may have waited for that: from or to storage,
// or, of one that has files open on something that is no disk of this machine (NFS, Ceph, FUSE), through read calls
// while every disk was quiet. Such calls of another job are of pipes and of what the page cache held.
func (l levels) ownIO(now levels, remote bool) bool {
	fetched := now.fetched - l.fetched
	return fetched > 0 || now.stored-l.stored-fetched > logBytes || remote && now.asked > l.asked && now.disks == l.disks
}
