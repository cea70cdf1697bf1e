package emit

import (
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/semconv"
)

// disks emits every disk with any I/O since boot, and of loop devices those with any since they were first seen: on a
// machine with snaps they are most of the devices, and their disk counts the same bytes.
func (m *Metrics) disks(b *builder, now *sample.Snapshot) {
	b.at(now.Disks.At, m.last.Disks.At)
	interval := now.Disks.At.Mono - m.last.Disks.At.Mono
	for i := range now.Disks.Disks {
		d := &now.Disks.Disks[i]
		if d.Unused() || m.still(d) {
			continue
		}
		sets := m.sets.disks.get(d.Name, newDiskSets)
		if restart := d.Reset.Wall; !restart.IsZero() {
			b.start = restart
		}
		b.disk(d, sets)
		b.start = now.Boot
		if last := find(m.last.Disks.Disks, func(x *sample.Disk) bool { return x.Name == d.Name }); last != nil {
			if delta, ok := d.Since(last, interval); ok {
				b.diskRates(&delta, sets)
			}
		}
		if c := find(now.Ceilings, func(x *sample.Ceiling) bool { return x.Disk == d.Name }); c != nil {
			b.ceiling(c, sets)
		}
	}
}

// still reports whether a device is a loop device, on a disk of this machine, that has done nothing so far.
func (m *Metrics) still(d *sample.Disk) bool {
	if d.Leaf || !strings.HasPrefix(d.Name, "loop") {
		return false
	}
	operations := d.ReadIOs + d.WriteIOs
	first, seen := m.loops[d.Name]
	if !seen {
		if m.loops == nil {
			m.loops = map[string]uint64{}
		}
		m.loops[d.Name], first = operations, operations
	}
	return first == operations
}

func (b *builder) disk(d *sample.Disk, sets *diskSets) {
	b.int(&semconv.SystemDiskIO, d.ReadBytes, sets.read)
	b.int(&semconv.SystemDiskIO, d.WriteBytes, sets.write)
	b.int(&semconv.SystemDiskOperations, d.ReadIOs, sets.read)
	b.int(&semconv.SystemDiskOperations, d.WriteIOs, sets.write)
	b.int(&semconv.SystemDiskMerged, d.ReadMerges, sets.read)
	b.int(&semconv.SystemDiskMerged, d.WriteMerges, sets.write)
	spent := func(metric *semconv.Metric, total time.Duration, lacks sample.Fields, set attribute.Set) {
		if d.Has&lacks == 0 {
			b.float(metric, total.Seconds(), set)
		}
	}
	spent(&semconv.SystemDiskOperationTime, d.ReadTicks, sample.LacksReadTime, sets.read)
	spent(&semconv.SystemDiskOperationTime, d.WriteTicks, sample.LacksWriteTime, sets.write)
	spent(&semconv.SystemDiskIOTime, d.IOTicks, sample.LacksIOTicks|sample.BusyTooLong, sets.plain)
	if d.Has&sample.LacksInFlight == 0 {
		b.int(&semconv.SystemDiskPendingOperations, d.InFlight, sets.plain)
	}
	spent(&semconv.SystemDiskWeightedIOTime, d.TimeInQueue, sample.LacksQueue, sets.plain)
	if d.Has&sample.HasDiscards != 0 {
		b.int(&semconv.DiskDiscardOperations, d.DiscardIOs, sets.plain)
		b.int(&semconv.DiskDiscardIO, d.DiscardBytes, sets.plain)
		spent(&semconv.DiskDiscardTime, d.DiscardTicks, sample.LacksDiscardTime, sets.plain)
	}
	if d.Has&sample.HasFlushes != 0 {
		b.int(&semconv.DiskFlushOperations, d.FlushIOs, sets.plain)
		spent(&semconv.DiskFlushTime, d.FlushTicks, sample.LacksFlushTime, sets.plain)
	}
}

// diskRates emits the values of iostat over the collection interval.
func (b *builder) diskRates(d *sample.DiskDelta, sets *diskSets) {
	if ratio, ok := d.Utilization(); ok {
		b.float(&semconv.DiskUtilization, ratio, sets.plain)
	}
	if depth, ok := d.QueueDepth(); ok {
		b.float(&semconv.DiskQueueDepth, depth, sets.plain)
	}
	if await, ok := d.ReadAwait(); ok {
		b.float(&semconv.DiskAwait, await, sets.read)
	}
	if await, ok := d.WriteAwait(); ok {
		b.float(&semconv.DiskAwait, await, sets.write)
	}
}

// latencies emits how long the operations of disks took: for all programs, which are the job "", or for those of jobs.
// It makes no resource for a job that has no other metric.
func (m *Metrics) latencies(jobs map[string]*builder, now *sample.Snapshot) {
	at := now.Latencies.At.Wall
	for i := range now.Latencies.Latencies {
		l := &now.Latencies.Latencies[i]
		if b := jobs[l.Job]; b != nil {
			b.exponential(&semconv.DiskOperationDuration, m.latency(l, at))
		}
	}
}

// latency is one data point. The counts are those of the snapshot, and immutable.
func (m *Metrics) latency(l *sample.Latency, at time.Time) metricdata.ExponentialHistogramDataPoint[float64] {
	sets := m.sets.disks.get(l.Disk, newDiskSets)
	return metricdata.ExponentialHistogramDataPoint[float64]{
		Attributes: *sets.of(l.Operation), StartTime: startBefore(l.Began.Wall, at), Time: at,
		Count: l.Count(), Sum: l.Sum.Seconds(),
		Scale: sample.LatencyScale, ZeroCount: l.Zero, ZeroThreshold: zeroThreshold,
		PositiveBucket: metricdata.ExponentialBucket{Offset: int32(sample.LatencyFirst + l.First), Counts: l.Counts},
	}
}

// zeroThreshold is the begin of the first bucket in seconds.
const zeroThreshold = 1.0 / (1 << (-sample.LatencyFirst >> sample.LatencyScale))

// ceiling emits the known ceilings of a disk.
func (b *builder) ceiling(c *sample.Ceiling, sets *diskSets) {
	if c.Read > 0 {
		b.float(&semconv.DiskThroughputCeiling, c.Read, sets.read)
	}
	if c.Write > 0 {
		b.float(&semconv.DiskThroughputCeiling, c.Write, sets.write)
	}
}

// mounts emits the mounts that are on no disk of this machine, and GPUDirect Storage.
func (m *Metrics) mounts(b *builder, now *sample.Snapshot) {
	b.at(now.Mounts.At, m.last.Mounts.At)
	for i := range now.Mounts.MountCounters {
		c := &now.Mounts.MountCounters[i]
		if b.start = c.Began.Wall; b.start.IsZero() { // of an old recording
			b.start = now.Boot
		}
		b.mount(c)
	}
	b.start = now.Boot
	if d := now.Mounts.GPUDirect; d != nil {
		b.direct(&d.Read, directRead, d.HasTransfer)
		b.direct(&d.Write, directWrite, d.HasTransfer)
	}
}

func (b *builder) mount(c *sample.MountCounters) {
	of := list{
		semconv.MountSourceKey.String(UTF8(c.Source)), semconv.SystemFilesystemMountpointKey.String(UTF8(c.Point)),
		semconv.SystemFilesystemTypeKey.String(UTF8(c.Type)),
	}
	plain := of.with()
	operations, requests := c.Has&sample.HasMountOperations != 0, c.Has&sample.HasMountTransport != 0
	for _, class := range [...]struct {
		*sample.MountOperations
		name attribute.KeyValue
	}{
		{&c.Read, semconv.MountOperationClassRead}, {&c.Write, semconv.MountOperationClassWrite},
		{&c.Other, semconv.MountOperationClassOther},
	} {
		if !operations {
			break
		}
		set := of.with(class.name)
		b.int(&semconv.MountOperations, class.Operations, set)
		if class.MountOperations != &c.Other {
			b.int(&semconv.MountIO, class.Bytes, set)
		}
		if c.Has&sample.HasMountTime != 0 {
			b.float(&semconv.MountOperationTime, class.Time.Seconds(), set)
		}
		if requests {
			b.float(&semconv.MountQueueTime, class.Queue.Seconds(), set)
			b.float(&semconv.MountRoundTripTime, class.RoundTrip.Seconds(), set)
		}
	}
	if requests {
		b.int(&semconv.MountRetransmissions, c.Retransmissions, plain)
		b.int(&semconv.MountTimeouts, c.Timeouts, plain)
	}
	if c.Connections > 0 {
		b.int(&semconv.MountConnectionCount, uint64(c.Connections), plain)
	}
	if c.Has&sample.HasMountWaiting != 0 {
		b.int(&semconv.MountRequestWaiting, c.Waiting, plain)
		b.float(&semconv.MountWaitingTime, c.WaitingTime.Seconds(), plain)
	}
}

func (b *builder) direct(d *sample.GPUDirectTransfers, set attribute.Set, transfers bool) {
	b.int(&semconv.GPUDirectErrors, d.Errors, set)
	if transfers {
		b.int(&semconv.GPUDirectIO, d.Bytes, set)
		b.int(&semconv.GPUDirectOperations, d.Operations, set)
	}
}

var (
	directRead  = attribute.NewSet(semconv.DiskIODirectionRead)
	directWrite = attribute.NewSet(semconv.DiskIODirectionWrite)
)
