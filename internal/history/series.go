package history

import (
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// Series is one quantity of one kind of device. All are cumulative, times in seconds, sizes in bytes.
type Series uint8

const (
	DiskReadIOs Series = iota
	DiskReadBytes
	DiskReadTicks // s, sum over reads
	DiskWriteIOs
	DiskWriteBytes
	DiskWriteTicks
	DiskIOTicks     // s
	DiskTimeInQueue // operations in flight x s

	DisksBytes  // read and written on all leaf disks
	DisksQueued // operations in flight x s, of the leaf disk with the longest queue

	IOSome // s, by scope
	IOFull
	CPUSome

	HostCPUTime     // core-seconds of work on all cores
	HostBusiestCore // s, the integral of the busiest core's utilization

	JobCPUTime // core-seconds
	JobReadBytes
	JobWriteBytes
	JobReadChars
	JobSystemTime // part of JobCPUTime, in the kernel

	GPUBusyTime // s

	LedgerBusy // s, by ledger
	LedgerStorage
	LedgerCPU

	LedgerGain // s, by ledger of a job: time that instant storage would have saved; it may fall, see kind.falls

	LedgerScheduled   // s, by ledger of a job: time that was divided by evidence of the scheduler
	LedgerGainLow     // s, that storage without waiting would have saved, with the kernel's work as it was
	LedgerGainWorkers // s, that twice the readers would have saved
	LedgerGainGPU     // s, that a GPU twice as fast would have saved
	LedgerWork        // core-seconds of work of the job's threads, without fetching data
	LedgerFed         // s, in which the leading thread waited for one that reads data
	LedgerGainNetwork // s, that instant storage and peers that send at once would have saved
	LedgerReady       // s, part of LedgerCPU: ready for a CPU, and without one

	LedgerSampled // s, part of LedgerScheduled: by moments
	LedgerMoments // at which the leading thread was looked at

	OtherGPU     // s, parts of other, by ledger of a job: in a call of the GPU's driver
	OtherNetwork // in a socket
	OtherPipe    // in a pipe
	OtherLock    // in a futex or another lock
	OtherTimer   // until a timer
	OtherChild   // until a child process ended
	OtherSteal   // the hypervisor ran something else
	OtherStop    // a signal, a debugger or the freezer stopped it
	OtherEvent   // in any other call

	// Of a layer: a device that is stacked on others (sample.Disk.Layer). No sum over disks includes it.
	LayerReadIOs
	LayerReadBytes
	LayerReadTicks // s, sum over reads
	LayerWriteIOs
	LayerWriteBytes
	LayerWriteTicks
	LayerIOTicks
	LayerTimeInQueue

	// Of a mount without a disk (sample.MountCounters), by its ID.
	MountReads
	MountReadBytes
	MountReadQueue // s, sum over operations
	MountReadRoundTrip
	MountReadTime
	MountWrites
	MountWriteBytes
	MountWriteQueue
	MountWriteRoundTrip
	MountWriteTime
	MountOthers
	MountOtherQueue
	MountOtherRoundTrip
	MountOtherTime
	MountRetransmissions
	MountTimeouts
	MountCalled  // bytes that read calls returned
	MountWaiting // requests x s
	PeerReceived // bytes, by peer of a job (PeerID)
	PeerSent
	PeerMessages // packets of data sent
	PeerOpened   // connections
	JobFaults    // minor page faults, by job
	JobRefaulted // bytes, by job, of files that a cgroup read again because it had dropped them
	JobKept      // bytes, by job: sample.PageCache.Kept; it may fall
	JobDrops     // sample.PageCache.Drops, by job
	seriesCount
)

// Key is one column: a quantity, and the device, scope, job or ledger that it belongs to.
type Key struct {
	Series Series
	ID     string
}

// kind is a group of columns that one device has in common.
type kind uint8

const (
	kindDisk kind = iota
	kindDisks
	kindIO
	kindCPUPressure
	kindHost
	kindJob
	kindGPU
	kindLedger
	kindGain
	kindScheduled
	kindSampled
	kindOther
	kindLayer
	kindMountRead
	kindMountWrite
	kindMountOther
	kindMountWaiting
	kindPeer
	kindMemory
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
	peerAxis
	mountAxis // the last one: New counts the others before they are used
	axisCount
)

type groupKey struct {
	kind kind
	id   string
}

// maxColumns is the largest number of columns of a kind.
const maxColumns = 9

// layout is the axis, the first column and the number of columns of each kind, and what is special about it.
var layout = [...]struct {
	axis  axisID
	first Series
	count int
	traits
}{
	kindDisk:        {diskAxis, DiskReadIOs, 8, 0},
	kindDisks:       {diskAxis, DisksBytes, 2, 0},
	kindIO:          {pressureAxis, IOSome, 2, 0},
	kindCPUPressure: {pressureAxis, CPUSome, 1, fine},
	kindHost:        {cpuAxis, HostCPUTime, 2, 0},
	kindJob:         {processAxis, JobCPUTime, jobColumns, fine | counted},
	kindGPU:         {gpuAxis, GPUBusyTime, 1, 0},
	kindLedger:      {ledgerAxis, LedgerBusy, 3, counted},
	kindGain:        {ledgerAxis, LedgerGain, 1, fine | counted | falls},
	kindScheduled:   {ledgerAxis, LedgerScheduled, 8, fine | counted | falls},
	kindSampled:     {ledgerAxis, LedgerSampled, 2, fine | counted},
	kindOther:       {ledgerAxis, OtherGPU, 9, fine | counted},
	kindLayer:       {diskAxis, LayerReadIOs, 8, fine},

	kindMountRead:    {mountAxis, MountReads, 5, fine | brief},
	kindMountWrite:   {mountAxis, MountWrites, 5, fine | brief},
	kindMountOther:   {mountAxis, MountOthers, 7, fine | brief},
	kindMountWaiting: {mountAxis, MountWaiting, 1, fine | brief},
	kindPeer:         {peerAxis, PeerReceived, 4, fine | brief | counted},
	kindMemory:       {processAxis, JobFaults, 4, fine | brief | counted | falls},
}

// traits are what is special about a kind.
type traits uint8

const (
	fine    traits = 1 << iota // on the finest tier only: its devices are many or short-lived
	brief                      // a tenth of the rows is enough: the ledger reads it within seconds, or once a second
	counted                    // it counts from zero when it is first followed, so that nothing is missing before
	falls                      // it may fall: a gain is taken back when a thread waits that a replay has run ahead
)

func (k kind) is(t traits) bool { return layout[k].traits&t != 0 }

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

func (k kind) ofDisk() bool { return k == kindDisk || k == kindLayer }

// ofMount reports whether the kind is of a mount without a disk.
func (k kind) ofMount() bool { return kindMountRead <= k && k <= kindMountWaiting }

// rows returns how many values a column has on a tier of so many rows.
func (k kind) rows(tier int) int {
	if k.is(brief) && tier%briefly == 0 && tier/briefly >= minBrief {
		return tier / briefly
	}
	return tier
}

const (
	briefly  = 10  // divisor of the number of rows: leaves a minute of readings every 100 ms, or ten of one a second
	minBrief = 600 // rows: six seconds of readings every 10 ms
)

// Shares of the memory. Columns on all tiers may use fullShare, so that later devices find room on the finest tier.
// Disks may use less, so that any number of them leaves room for the ledgers.
const (
	fullShare     = 0.5
	diskFullShare = 0.2
	diskShare     = 0.3
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
		return len(s.Jobs)+len(s.Candidates) > 0
	case gpuAxis:
		return len(s.GPUs) > 0
	case mountAxis:
		return s.MountsRead
	case peerAxis:
		return len(s.Peers) > 0
	}
	return false // the ledger axis: see AppendLedgers
}

// each yields the columns of every device on one axis of a reading. reset is when the counters of the device restarted.
// Of disks, only leaves with any I/O and the layers above them are yielded, as two kinds: no sum may count an operation
// twice.
func (h *History) each(
	a axisID, s *sample.Sample, yield func(key groupKey, values [maxColumns]float64, reset time.Duration),
) {
	var v [maxColumns]float64
	switch a {
	case diskAxis:
		v[0], v[1] = h.totals.disk(s)
		yield(groupKey{kindDisks, ""}, v, 0) // first, so that any number of disks leaves room for it
		for i := range s.Disks {
			d := &s.Disks[i]
			if !d.Leaf && !d.Layer || d.Unused() {
				continue
			}
			key := groupKey{kindDisk, d.Name}
			if d.Layer {
				key.kind = kindLayer
			}
			v = [maxColumns]float64{
				float64(d.ReadIOs), float64(d.ReadBytes), d.ReadTicks.Seconds(),
				float64(d.WriteIOs), float64(d.WriteBytes), d.WriteTicks.Seconds(),
				d.IOTicks.Seconds(), d.TimeInQueue.Seconds(),
			}
			yield(key, v, d.Reset.Mono)
		}
	case pressureAxis:
		for i := range s.Pressures {
			p := &s.Pressures[i]
			if p.Resource != sample.IO && p.Resource != sample.CPU {
				continue // no verdict needs that of memory
			}
			v[0], v[1] = p.Some.Seconds(), p.Full.Seconds()
			k := kindCPUPressure
			if p.Resource == sample.IO {
				k = kindIO
			}
			yield(groupKey{k, p.Scope}, v, 0)
		}
	case cpuAxis:
		v[0], v[1] = h.totals.cpu(s)
		yield(groupKey{kindHost, ""}, v, 0)
	case processAxis:
		for i := range s.Jobs {
			j := &s.Jobs[i]
			yield(groupKey{kindJob, j.ID}, jobValues(j), 0)
			yield(groupKey{kindMemory, j.ID}, [maxColumns]float64{float64(j.Faults), float64(j.Memory.Refaulted),
				float64(j.PageCache.Kept), float64(j.PageCache.Drops)}, 0)
		}
	case gpuAxis:
		for i := range s.GPUs {
			if g := &s.GPUs[i]; g.Status != sample.GPUWorks || g.Has&sample.LacksBusy != 0 {
				continue // as if it had left
			}
			v[0] = s.GPUs[i].Busy.Seconds()
			yield(groupKey{kindGPU, s.GPUs[i].ID}, v, 0)
		}
	case mountAxis:
		for i := range s.MountCounters[:min(len(s.MountCounters), sample.MaxMounts)] {
			eachOfMount(&s.MountCounters[i], func(k kind, values [maxColumns]float64) {
				yield(groupKey{k, s.MountCounters[i].ID}, values, s.MountCounters[i].Began.Mono)
			})
		}
	case peerAxis:
		for i := range s.Peers {
			p := &s.Peers[i]
			v = [maxColumns]float64{float64(p.Received), float64(p.Sent), float64(p.Messages), float64(p.Opened)}
			yield(groupKey{kindPeer, PeerID(p)}, v, 0)
		}
	}
}

// eachOfMount yields the columns of one mount, also those of operations that it has not done yet.
func eachOfMount(m *sample.MountCounters, yield func(kind, [maxColumns]float64)) {
	values := func(o *sample.MountOperations) [maxColumns]float64 {
		return [maxColumns]float64{
			float64(o.Operations), float64(o.Bytes), o.Queue.Seconds(), o.RoundTrip.Seconds(), o.Time.Seconds(),
		}
	}
	if m.Has&sample.HasMountOperations != 0 {
		yield(kindMountRead, values(&m.Read))
		yield(kindMountWrite, values(&m.Write))
		yield(kindMountOther, [maxColumns]float64{
			float64(m.Other.Operations), m.Other.Queue.Seconds(), m.Other.RoundTrip.Seconds(), m.Other.Time.Seconds(),
			float64(m.Retransmissions), float64(m.Timeouts), float64(m.Called),
		})
	}
	if m.Has&sample.HasMountWaiting != 0 {
		yield(kindMountWaiting, [maxColumns]float64{m.WaitingTime.Seconds()})
	}
}

// PeerID is the ID of a peer's columns.
func PeerID(p *sample.Peer) string {
	if p.Accepted {
		return p.Job + "\x00accepted " + p.Address
	}
	return p.Job + "\x00" + p.Address
}

// jobValues returns the values of kindJob.
func jobValues(j *sample.Job) [maxColumns]float64 {
	return [maxColumns]float64{
		j.CPUTime.Seconds(), float64(j.ReadBytes), float64(j.WriteBytes), float64(j.ReadChars),
		j.SystemTime.Seconds(),
	}
}

// totals sum the growth of many devices into a few columns for the machine, so that 128 cores do not take 128 columns.
// A device that comes or goes does not change a total.
type totals struct {
	cores map[string]time.Duration // work
	disks map[string]diskTotal

	work        float64
	busiestCore float64
	bytes       float64
	queued      float64
}

type diskTotal struct {
	bytes    uint64
	weighted time.Duration
	reset    time.Duration
}

// cpu returns the totals after s: the work of all cores, and the integral of the busiest core's utilization.
func (t *totals) cpu(s *sample.Sample) (work, busiestCore float64) {
	var sum, busiest time.Duration
	for i := range s.Cores {
		core := &s.Cores[i]
		if last, ok := t.cores[core.Name]; ok {
			grown := max(0, core.Busy()-last)
			sum += grown
			busiest = max(busiest, grown)
		}
	}
	return t.work + sum.Seconds(), t.busiestCore + busiest.Seconds()
}

// disk returns the totals after s: the bytes of all leaf disks, and the integral of the longest queue.
func (t *totals) disk(s *sample.Sample) (bytes, queued float64) {
	var sum uint64
	var longest time.Duration
	for i := range s.Disks {
		d := &s.Disks[i]
		last, ok := t.disks[d.Name]
		if !ok || !d.Leaf || last.reset != d.Reset.Mono {
			continue
		}
		sum += d.ReadBytes + d.WriteBytes - last.bytes
		longest = max(longest, d.TimeInQueue-last.weighted)
	}
	return t.bytes + float64(sum), t.queued + longest.Seconds()
}

// advance makes s the previous reading and drops the names of absent devices.
func (t *totals) advance(a axisID, s *sample.Sample) {
	switch a {
	case cpuAxis:
		t.work, t.busiestCore = t.cpu(s)
		if len(t.cores) != len(s.Cores) {
			t.cores = make(map[string]time.Duration, len(s.Cores))
		}
		for i := range s.Cores {
			t.cores[s.Cores[i].Name] = s.Cores[i].Busy()
		}
	case diskAxis:
		t.bytes, t.queued = t.disk(s)
		if len(t.disks) != len(s.Disks) {
			t.disks = make(map[string]diskTotal, len(s.Disks))
		}
		for i := len(s.Disks) - 1; i >= 0; i-- { // of a duplicate name the first device counts
			d := &s.Disks[i]
			t.disks[d.Name] = diskTotal{d.ReadBytes + d.WriteBytes, d.TimeInQueue, d.Reset.Mono}
		}
	}
}
