package emit

import (
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/semconv"
)

// disks emits every device that did any I/O since boot.
func (m *Metrics) disks(b *builder, now *sample.Snapshot) {
	b.at(now.Disks.At, m.last.Disks.At)
	interval := now.Disks.At.Mono - m.last.Disks.At.Mono
	for i := range now.Disks.Disks {
		d := &now.Disks.Disks[i]
		if d.Unused() {
			continue
		}
		of := m.sets.disks.of(d.Name, newDiskSets)
		if restart := d.Reset.Wall; !restart.IsZero() {
			b.start = restart
		}
		b.disk(d, of)
		b.start = now.Boot
		if last := find(m.last.Disks.Disks, func(x *sample.Disk) bool { return x.Name == d.Name }); last != nil {
			if delta, ok := d.Since(last, interval); ok {
				b.diskRates(&delta, of)
			}
		}
		if c := find(now.Ceilings, func(x *sample.Ceiling) bool { return x.Disk == d.Name }); c != nil {
			b.ceiling(c, of)
		}
	}
}

func (b *builder) disk(d *sample.Disk, of *diskSets) {
	b.int(&semconv.SystemDiskIO, d.ReadBytes, of.read)
	b.int(&semconv.SystemDiskIO, d.WriteBytes, of.write)
	b.int(&semconv.SystemDiskOperations, d.ReadIOs, of.read)
	b.int(&semconv.SystemDiskOperations, d.WriteIOs, of.write)
	b.int(&semconv.SystemDiskMerged, d.ReadMerges, of.read)
	b.int(&semconv.SystemDiskMerged, d.WriteMerges, of.write)
	b.float(&semconv.SystemDiskOperationTime, d.ReadTicks.Seconds(), of.read)
	b.float(&semconv.SystemDiskOperationTime, d.WriteTicks.Seconds(), of.write)
	b.float(&semconv.SystemDiskIOTime, d.IOTicks.Seconds(), of.plain)
	b.int(&semconv.SystemDiskPendingOperations, d.InFlight, of.plain)
	b.float(&semconv.SystemDiskWeightedIOTime, d.TimeInQueue.Seconds(), of.plain)
	if d.Has&sample.HasDiscards != 0 {
		b.int(&semconv.DiskDiscardOperations, d.DiscardIOs, of.plain)
		b.int(&semconv.DiskDiscardIO, d.DiscardBytes, of.plain)
		b.float(&semconv.DiskDiscardTime, d.DiscardTicks.Seconds(), of.plain)
	}
	if d.Has&sample.HasFlushes != 0 {
		b.int(&semconv.DiskFlushOperations, d.FlushIOs, of.plain)
		b.float(&semconv.DiskFlushTime, d.FlushTicks.Seconds(), of.plain)
	}
}

// diskRates emits what iostat shows, over the collection interval.
func (b *builder) diskRates(d *sample.DiskDelta, of *diskSets) {
	b.float(&semconv.DiskUtilization, d.Utilization(), of.plain)
	b.float(&semconv.DiskQueueDepth, d.QueueDepth(), of.plain)
	if await, ok := d.ReadAwait(); ok {
		b.float(&semconv.DiskAwait, await, of.read)
	}
	if await, ok := d.WriteAwait(); ok {
		b.float(&semconv.DiskAwait, await, of.write)
	}
}

// ceiling tells what was learned of a disk, where anything was.
func (b *builder) ceiling(c *sample.Ceiling, of *diskSets) {
	if c.Read > 0 {
		b.float(&semconv.DiskThroughputCeiling, c.Read, of.read)
	}
	if c.Write > 0 {
		b.float(&semconv.DiskThroughputCeiling, c.Write, of.write)
	}
}
