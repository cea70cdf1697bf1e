package emit

import (
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/semconv"
)

// mostDisks bounds what is remembered of disks that are gone; those that are there are always remembered.
const mostDisks = 1024

// diskState is what is remembered of a disk from one collection to the next, also while it is unplugged.
type diskState struct {
	raw     sample.Disk      // as it was read last
	wrapped [6]time.Duration // what its time counters have lost by wrapping
	began   time.Time        // when it began to count, where that was after boot
}

// disks tells of every device that did any I/O since boot. It takes the wraps out of the times in now.
func (m *Metrics) disks(b *builder, now *sample.Snapshot) {
	elapsed := b.at(now.Disks.At, m.last.Disks.At)
	for i := range now.Disks.Disks {
		d := &now.Disks.Disks[i]
		again := m.follow(d)
		if d.Reads+d.Writes+d.Discards == 0 {
			continue
		}
		of := m.sets.disks.of(d.Name, newDiskSets)
		if began := m.seen[d.Name].began; !began.IsZero() {
			b.start = began
		}
		b.disk(d, of)
		b.start = now.Boot
		last := find(m.last.Disks.Disks, func(x *sample.Disk) bool { return x.Name == d.Name })
		if last != nil && elapsed > 0 && !again {
			b.diskRates(d, last, elapsed, of)
		}
		if c := find(now.Ceilings, func(x *sample.Ceiling) bool { return x.Disk == d.Name }); c != nil {
			b.ceiling(c, of)
		}
	}
	if len(m.seen) > mostDisks {
		for name := range m.seen {
			if find(now.Disks.Disks, func(x *sample.Disk) bool { return x.Name == name }) == nil {
				delete(m.seen, name)
			}
		}
	}
}

// follow says whether the device has begun to count again, and takes the wraps out of its times.
func (m *Metrics) follow(d *sample.Disk) (again bool) {
	state := m.seen[d.Name]
	if state == nil {
		state = &diskState{raw: *d}
		m.seen[d.Name] = state
	}
	if again = d.RestartedSince(&state.raw); again {
		*state = diskState{began: m.last.Disks.At.Wall}
	}
	before := times(&state.raw)
	raw := *d
	for i, spent := range times(d) {
		if *spent < *before[i] {
			state.wrapped[i] += sample.DiskTimeWrap
		}
		*spent += state.wrapped[i]
	}
	state.raw = raw
	return again
}

func times(d *sample.Disk) [6]*time.Duration {
	return [6]*time.Duration{&d.ReadTime, &d.WriteTime, &d.BusyTime, &d.WeightedTime, &d.DiscardTime, &d.FlushTime}
}

func (b *builder) disk(d *sample.Disk, of *diskSets) {
	b.int(&semconv.SystemDiskIO, d.ReadBytes, of.read)
	b.int(&semconv.SystemDiskIO, d.WriteBytes, of.write)
	b.int(&semconv.SystemDiskOperations, d.Reads, of.read)
	b.int(&semconv.SystemDiskOperations, d.Writes, of.write)
	b.int(&semconv.SystemDiskMerged, d.ReadsMerged, of.read)
	b.int(&semconv.SystemDiskMerged, d.WritesMerged, of.write)
	b.float(&semconv.SystemDiskOperationTime, d.ReadTime.Seconds(), of.read)
	b.float(&semconv.SystemDiskOperationTime, d.WriteTime.Seconds(), of.write)
	b.float(&semconv.SystemDiskIOTime, d.BusyTime.Seconds(), of.plain)
	b.int(&semconv.SystemDiskPendingOperations, d.InFlight, of.plain)
	b.float(&semconv.SystemDiskWeightedIOTime, d.WeightedTime.Seconds(), of.plain)
	if d.Has&sample.HasDiscards != 0 {
		b.int(&semconv.DiskDiscardOperations, d.Discards, of.plain)
		b.int(&semconv.DiskDiscardIO, d.DiscardBytes, of.plain)
		b.float(&semconv.DiskDiscardTime, d.DiscardTime.Seconds(), of.plain)
	}
	if d.Has&sample.HasFlushes != 0 {
		b.int(&semconv.DiskFlushOperations, d.Flushes, of.plain)
		b.float(&semconv.DiskFlushTime, d.FlushTime.Seconds(), of.plain)
	}
}

// diskRates tells what iostat shows, over the collection interval. The kernel's busy time is sampled by jiffies and
// can run a little past the clock.
func (b *builder) diskRates(d, last *sample.Disk, elapsed float64, of *diskSets) {
	b.float(&semconv.DiskUtilization, min(1, (d.BusyTime-last.BusyTime).Seconds()/elapsed), of.plain)
	b.float(&semconv.DiskQueueDepth, (d.WeightedTime-last.WeightedTime).Seconds()/elapsed, of.plain)
	await := func(operations uint64, spent time.Duration, attrs attribute.Set) {
		if operations > 0 {
			b.float(&semconv.DiskAwait, spent.Seconds()/float64(operations), attrs)
		}
	}
	await(d.Reads-last.Reads, d.ReadTime-last.ReadTime, of.read)
	await(d.Writes-last.Writes, d.WriteTime-last.WriteTime, of.write)
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
