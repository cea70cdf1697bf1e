package history

import (
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// Series names one quantity of one kind of device. All are cumulative; times are kept in seconds, sizes in bytes.
type Series uint8

const (
	DiskReadIOs Series = iota
	DiskReadBytes
	DiskReadTicks // s, summed over operations
	DiskWriteIOs
	DiskWriteBytes
	DiskWriteTicks
	DiskIOTicks     // s
	DiskTimeInQueue // operations under way x s

	DisksBytes  // read and written on all leaf disks
	DisksQueued // s, the growth of the most loaded leaf disk's weighted time

	IOSome // s, by scope
	IOFull
	CPUSome

	HostCPUTime // core-seconds of work on all cores
	HostPegged  // s, the integral of the busiest core's utilisation

	HostIOWait // core-seconds of idling while a task of that core waited for I/O; for the ledger alone, kept for a minute

	JobCPUTime // core-seconds
	JobReadBytes
	JobWriteBytes

	JobSystemTime // of JobCPUTime, in the kernel; these are for the ledger alone and kept for a minute
	JobReadChars
	JobLeaders // thread-seconds, see sample.Job
	JobLeaderTime
	JobLeaderReady
	JobReaderTime // thread-seconds
	JobReaderWork
	JobInReads

	GPUBusyTime // s

	LedgerBusy // s, by ledger
	LedgerStorage
	LedgerCPU

	LedgerGain // s, by ledger of a job: what would not have passed had storage been instant
	seriesCount
)

// Key names one column: a quantity, and the device, scope, job or ledger that it belongs to.
type Key struct {
	Series Series
	ID     string
}

// kind is what comes and goes together: one device's columns.
type kind uint8

const (
	kindDisk kind = iota
	kindDisks
	kindIO
	kindCPUPressure
	kindHost
	kindHostNow
	kindJob
	kindJobNow
	kindGPU
	kindLedger
	kindGain
	kindNone
)

type axisID int

const (
	diskAxis axisID = iota
	pressureAxis
	cpuAxis
	processAxis
	gpuAxis
	ledgerAxis
	axisCount
)

type groupKey struct {
	kind kind
	id   string
}

// maxColumns is the largest number of columns that a kind has.
const maxColumns = 8

// layout says where the columns of each kind live.
var layout = [...]struct {
	axis  axisID
	first Series
	count int
}{
	kindDisk:        {diskAxis, DiskReadIOs, 8},
	kindDisks:       {diskAxis, DisksBytes, 2},
	kindIO:          {pressureAxis, IOSome, 2},
	kindCPUPressure: {pressureAxis, CPUSome, 1},
	kindHost:        {cpuAxis, HostCPUTime, 2},
	kindHostNow:     {cpuAxis, HostIOWait, 1},
	kindJob:         {processAxis, JobCPUTime, 3},
	kindJobNow:      {processAxis, JobSystemTime, 8},
	kindGPU:         {gpuAxis, GPUBusyTime, 1},
	kindLedger:      {ledgerAxis, LedgerBusy, 3},
	kindGain:        {ledgerAxis, LedgerGain, 1},
}

// kinds maps a series to its kind.
var kinds = func() (k [seriesCount]kind) {
	for i, l := range layout {
		for s := l.first; s < l.first+Series(l.count); s++ {
			k[s] = kind(i)
		}
	}
	return k
}()

func (s Series) kind() kind { return kinds[s] }
func (s Series) index() int { return int(s - layout[s.kind()].first) }
func (k kind) axis() axisID { return layout[k].axis }
func (k kind) columns() int { return layout[k].count }

// fineOnly devices are many, short-lived or of the moment: they are kept on the finest tier alone.
func (k kind) fineOnly() bool {
	return k == kindJob || k == kindCPUPressure || k == kindGain || k.brief()
}

// brief columns are for the ledger alone, which asks for them within seconds.
func (k kind) brief() bool { return k == kindJobNow || k == kindHostNow }

// counted devices count from zero when somebody begins to follow them: nothing of them is missing before.
func (k kind) counted() bool {
	return k == kindJob || k == kindJobNow || k == kindLedger || k == kindGain
}

// rows is how many of a tier's rows the kind's columns keep.
func (k kind) rows(tier int) int {
	if k.brief() && tier%briefly == 0 && tier/briefly >= leastBrief {
		return tier / briefly
	}
	return tier
}

const (
	briefly    = 10  // times fewer rows: a minute of readings each 100 ms
	leastBrief = 600 // rows: six seconds of readings each 10 ms
)

// Shares of the memory. What is kept on all tiers may fill it to fullShare, so that those who come later still find
// room on the finest one; disks may take less, for what the ledgers need must have room however many disks there are.
const (
	fullShare     = 0.75
	diskFullShare = 0.35
	diskShare     = 0.5
)

func contains(a axisID, s *sample.Sample) bool {
	switch a {
	case diskAxis:
		return len(s.Disks) > 0
	case pressureAxis:
		return len(s.Pressures) > 0
	case cpuAxis:
		return len(s.Cores) > 0
	case processAxis:
		return len(s.Jobs) > 0
	case gpuAxis:
		return len(s.GPUs) > 0
	}
	return false // the ledger axis: see AppendLedgers
}

// each gives the columns of every device on one axis of a reading. Of disks only leaves are kept, which no report
// counts twice, and those only that ever did any I/O.
func (h *History) each(a axisID, s *sample.Sample, yield func(key groupKey, values [maxColumns]float64, reset time.Duration)) {
	var v [maxColumns]float64
	switch a {
	case diskAxis:
		v[0], v[1] = h.totals.disk(s)
		yield(groupKey{kindDisks, ""}, v, 0) // first, so that it has its room however many disks there are
		for i := range s.Disks {
			d := &s.Disks[i]
			if !d.Leaf || d.ReadIOs+d.WriteIOs+d.DiscardIOs == 0 {
				continue
			}
			v = [maxColumns]float64{
				float64(d.ReadIOs), float64(d.ReadBytes), d.ReadTicks.Seconds(),
				float64(d.WriteIOs), float64(d.WriteBytes), d.WriteTicks.Seconds(),
				d.IOTicks.Seconds(), d.TimeInQueue.Seconds(),
			}
			yield(groupKey{kindDisk, d.Name}, v, d.Reset.Mono)
		}
	case pressureAxis:
		for i := range s.Pressures {
			p := &s.Pressures[i]
			if p.Resource == sample.Memory {
				continue // no verdict asks for it
			}
			v[0], v[1] = p.Some.Seconds(), p.Full.Seconds()
			yield(groupKey{pressureKind(p.Resource), p.Scope}, v, 0)
		}
	case cpuAxis:
		work, pegged, iowait := h.totals.cpu(s)
		v[0], v[1] = work, pegged
		yield(groupKey{kindHost, ""}, v, 0)
		v[0] = iowait
		yield(groupKey{kindHostNow, ""}, v, 0)
	case processAxis:
		for i := range s.Jobs {
			j := &s.Jobs[i]
			v[0], v[1], v[2] = j.CPUTime.Seconds(), float64(j.ReadBytes), float64(j.WriteBytes)
			yield(groupKey{kindJob, j.ID}, v, 0)
			v[0], v[1] = j.SystemTime.Seconds(), float64(j.ReadChars)
			v[2], v[3], v[4] = j.Leaders.Seconds(), j.LeaderTime.Seconds(), j.LeaderReady.Seconds()
			v[5], v[6], v[7] = j.ReaderTime.Seconds(), j.ReaderWork.Seconds(), j.InReads.Seconds()
			yield(groupKey{kindJobNow, j.ID}, v, 0)
		}
	case gpuAxis:
		for i := range s.GPUs {
			if g := &s.GPUs[i]; g.Status != sample.GPUWorks || g.Has&sample.LacksBusy != 0 {
				continue // as if it had left
			}
			v[0] = s.GPUs[i].Busy.Seconds()
			yield(groupKey{kindGPU, s.GPUs[i].ID}, v, 0)
		}
	}
}

func pressureKind(r sample.Resource) kind {
	switch r {
	case sample.IO:
		return kindIO
	case sample.CPU:
		return kindCPUPressure
	}
	return kindNone
}
