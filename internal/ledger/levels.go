package ledger

import (
	"math"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/sample"
)

// levels are the counters that a ledger needs, at one moment.
type levels struct {
	busy, some, hostCPU, busiestCore, jobCPU, queued float64 // s
	cpuSome                                          float64 // s, CPU pressure
	iowait                                           float64 // core-s
	system                                           float64 // of jobCPU, in the kernel
	fetched                                          float64 // bytes the job fetched from storage
	stored                                           float64 // bytes the job fetched from or sent to storage
	readChars                                        float64 // bytes the job read by calls, also from the page cache
	disks                                            float64 // bytes that all leaf disks moved
	leaders, leading, leaderReady, leaderSystem      float64 // s, see sample.Job
	reading, working, inReads                        float64
	hasSome, hasGPU, hasJob                          bool
}

// hostLevels are those of the machine, which all accounts have in common.
type hostLevels struct{ cpu, busiestCore, iowait, disks, queued float64 }

func readHost(h *history.History, p history.Point) (l hostLevels) {
	var two [2]float64
	h.Levels(history.HostCPUTime, "", p, two[:])
	l.cpu, l.busiestCore = two[0], two[1]
	h.Levels(history.HostIOWait, "", p, two[:1])
	l.iowait = two[0]
	h.Levels(history.DisksBytes, "", p, two[:])
	l.disks, l.queued = two[0], two[1]
	return l
}

// read looks up each group of columns once: with 64 jobs, lookups are most of what a round of readings costs.
func (a *account) read(h *history.History, p history.Point, host *hostLevels) levels {
	l := levels{
		hostCPU: host.cpu, busiestCore: host.busiestCore, iowait: host.iowait, disks: host.disks, queued: host.queued,
	}
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
	var counters [history.JobWriteBytes - history.JobCPUTime + 1]float64
	l.hasJob = h.Levels(history.JobCPUTime, a.target.Job, p, counters[:])
	of := func(s history.Series) float64 { return counters[s-history.JobCPUTime] }
	l.jobCPU, l.fetched = of(history.JobCPUTime), of(history.JobReadBytes)
	l.stored = l.fetched + of(history.JobWriteBytes)
	var now [history.JobLeaderSystem - history.JobSystemTime + 1]float64
	h.Levels(history.JobSystemTime, a.target.Job, p, now[:])
	of = func(s history.Series) float64 { return now[s-history.JobSystemTime] }
	l.system, l.readChars = of(history.JobSystemTime), of(history.JobReadChars)
	l.leaders, l.leading = of(history.JobLeaders), of(history.JobLeaderTime)
	l.leaderReady, l.leaderSystem = of(history.JobLeaderReady), of(history.JobLeaderSystem)
	l.reading, l.working, l.inReads = of(history.JobReaderTime), of(history.JobReaderWork), of(history.JobInReads)
	return l
}

// copyCost is the kernel's work to copy data from the page cache, in seconds per byte: about 5 GB/s. This part of the
// system time remains with the data in memory. Mapped files are not copied.
const copyCost = 0.2e-9

// fetching returns how much of the system time between two moments the kernel worked to fetch data from storage.
func (l levels) fetching(now levels, system float64) float64 {
	copied := max(0, min(now.fetched-l.fetched, now.readChars-l.readChars))
	return max(0, system*l.fetchedShare(now)-copied*copyCost)
}

// until returns the cell between two moments, dt seconds apart.
func (l levels) until(now levels, dt float64, s Target) cell {
	c := cell{
		dt:          dt,
		some:        now.some - l.some,
		scopeCPU:    now.hostCPU - l.hostCPU,
		queued:      now.queued - l.queued,
		iowait:      now.iowait - l.iowait,
		jobCPU:      now.busiestCore - l.busiestCore,
		hasGPU:      s.GPU != "",
		hasPressure: now.hasSome,
		shared:      s.Pressure == sample.HostScope && s.Job != "",
		ofJob:       s.Job != "",
		ownIO:       true,
	}
	if l.hasGPU && now.hasGPU {
		c.busy = now.busy - l.busy
	}
	if s.Job != "" {
		// An edge may have been read before a row that is interpolated for it.
		c.leading, c.ready = max(0, now.leading-l.leading), max(0, now.leaderReady-l.leaderReady)
		c.reading, c.working = now.reading-l.reading, now.working-l.working
		if s.Remote {
			c.inReads = now.inReads - l.inReads
		}
		c.leaders = (now.leaders - l.leaders) / dt
		c.jobCPU = now.jobCPU - l.jobCPU
		c.cached = l.cached(now) && !s.Remote
		c.fetching = l.fetching(now, now.system-l.system)
		c.leaderFetching = c.fetching
		if now.leaderSystem > 0 {
			c.leaderFetching = min(c.fetching, l.fetching(now, now.leaderSystem-l.leaderSystem))
		}
	}
	c.starved = c.ready
	if s.Own {
		c.starved = max(c.starved, now.cpuSome-l.cpuSome)
	}
	if s.Pressure != sample.HostScope {
		c.scopeCPU = c.jobCPU // of a shared cgroup only the job's part is known
	}
	return c
}

// ownQueue returns how long a job's reads of fetched bytes were in flight on the disk that it read from, summed over
// reads: its part of the disk's weighted time, by bytes. onDisk is all of that time. No counter has the disk of a read.
// It is one that read about as much or more in the same time. Of several it is the one with the least to do, so that a
// busy disk of other jobs is not charged to this one. disk is "" without such a disk.
func ownQueue(h *history.History, from, to history.Point, fetched float64) (queue, onDisk float64, disk string) {
	shortest := math.Inf(1)
	h.EachDisk(from, to, func(id string, read, moved, weighted float64) {
		own := weighted * min(1, fetched/moved)
		if read >= fetched/2 && own < shortest { // the job's bytes count when a read begins, the disk's when it ends
			shortest, onDisk, disk = own, weighted, id
		}
	})
	if disk == "" {
		return 0, 0, ""
	}
	return shortest, onDisk, disk
}

// weighted returns the growth of a disk's weighted time.
func weighted(h *history.History, disk string, from, to history.Point) float64 {
	key := history.Key{Series: history.DiskTimeInQueue, ID: disk}
	before, known := h.Level(key, from)
	after, still := h.Level(key, to)
	if !known || !still {
		return 0
	}
	return max(0, after-before)
}

// checkpointBytes is the number of bytes in a cell from which a job writes a checkpoint and not a log.
const checkpointBytes = 1 << 20

// wrote reports whether the job wrote much between two moments, and more than it read.
func (l levels) wrote(now levels) bool {
	fetched := now.fetched - l.fetched
	wrote := now.stored - l.stored - fetched
	return wrote >= checkpointBytes && wrote > fetched
}

// fetchedShare returns how much of the job's reads between two moments came from storage and not from the page cache.
func (l levels) fetchedShare(now levels) float64 {
	fetched, readChars := now.fetched-l.fetched, now.readChars-l.readChars
	if fetched <= 0 {
		return 0
	}
	return min(1, fetched/max(fetched, readChars)) // mapped files are fetched without a read call
}

// maxLogBytes is the largest number of bytes written in a cell that counts as a log. No process waits for a log.
const maxLogBytes = 64 << 10

// cached reports whether most of what the job read by calls between two moments was in the page cache.
func (l levels) cached(now levels) bool { return now.fetched-l.fetched < (now.readChars-l.readChars)/4 }

// ownIO reports whether the job itself did I/O between two moments that it may have waited for. This is I/O from or to
// storage. For a job with open files on no disk of this machine (NFS, Ceph, FUSE) it is also a read call while every
// disk was quiet. In other jobs such calls read from pipes and from the page cache.
func (l levels) ownIO(now levels, remote bool) bool {
	fetched := now.fetched - l.fetched
	stored := now.stored - l.stored - fetched
	return fetched > 0 || stored > maxLogBytes || remote && now.readChars > l.readChars && now.disks == l.disks
}
