package rate

import (
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// Disk is what one block device did in an interval, by the definitions of iostat(1). Every operation counts in the
// interval in which it completed. A mean over no operations is nil, and so is what the kernel does not count.
type Disk struct {
	Name string `json:"name"`
	Leaf bool   `json:"leaf"` // a whole device that stands on no other

	ReadsPerSecond        float64  `json:"reads_per_s"`             // r/s
	ReadBytesPerSecond    float64  `json:"read_bytes_per_s"`        // rkB/s x 1024
	ReadsMergedPerSecond  float64  `json:"reads_merged_per_s"`      // rrqm/s
	ReadAwait             *float64 `json:"read_await_ms,omitempty"` // r_await: from issue to completion, queues included
	ReadSize              *float64 `json:"read_size_bytes,omitempty"`
	WritesPerSecond       float64  `json:"writes_per_s"`
	WriteBytesPerSecond   float64  `json:"write_bytes_per_s"`
	WritesMergedPerSecond float64  `json:"writes_merged_per_s"`
	WriteAwait            *float64 `json:"write_await_ms,omitempty"`
	WriteSize             *float64 `json:"write_size_bytes,omitempty"`

	DiscardsPerSecond     *float64 `json:"discards_per_s,omitempty"` // nil before Linux 4.18
	DiscardBytesPerSecond *float64 `json:"discard_bytes_per_s,omitempty"`
	DiscardAwait          *float64 `json:"discard_await_ms,omitempty"`
	FlushesPerSecond      *float64 `json:"flushes_per_s,omitempty"` // nil before Linux 5.5
	FlushAwait            *float64 `json:"flush_await_ms,omitempty"`

	Await       *float64 `json:"await_ms,omitempty"` // of reads, writes and discards together
	QueueDepth  float64  `json:"queue_depth"`        // aqu-sz: operations under way, averaged over the interval
	Utilization float64  `json:"utilization"`        // %util / 100: the share in which at least one operation was under way
}

func disks(before, after *sample.Sample) []Disk {
	interval := elapsed(before, after)
	if interval <= 0 {
		return nil
	}
	was := make(map[string]*sample.Disk, len(before.Disks))
	for i := range before.Disks {
		if d := &before.Disks[i]; was[d.Name] == nil {
			was[d.Name] = d
		}
	}
	var list []Disk
	for i := range after.Disks {
		d := &after.Disks[i]
		last := was[d.Name]
		delete(was, d.Name) // the kernel has seen a name twice; nobody could tell which is which
		if last != nil && d.Reads+d.Writes+d.Discards > 0 && !d.RestartedSince(last) {
			list = append(list, disk(last, d, interval))
		}
	}
	return list
}

// disk makes the rates of a device that counted on from a to b. interval is more than zero.
func disk(a, b *sample.Disk, interval time.Duration) Disk {
	perSecond := func(from, to uint64) float64 { return float64(to-from) / interval.Seconds() }
	reads, writes, discards := b.Reads-a.Reads, b.Writes-a.Writes, b.Discards-a.Discards
	readTime, writeTime := sample.DiskTime(a.ReadTime, b.ReadTime), sample.DiskTime(a.WriteTime, b.WriteTime)
	discardTime := sample.DiskTime(a.DiscardTime, b.DiscardTime)
	d := Disk{
		Name: b.Name, Leaf: b.Leaf,
		ReadsPerSecond:        perSecond(a.Reads, b.Reads),
		ReadBytesPerSecond:    perSecond(a.ReadBytes, b.ReadBytes),
		ReadsMergedPerSecond:  perSecond(a.ReadsMerged, b.ReadsMerged),
		ReadAwait:             await(readTime, reads),
		ReadSize:              mean(float64(b.ReadBytes-a.ReadBytes), reads),
		WritesPerSecond:       perSecond(a.Writes, b.Writes),
		WriteBytesPerSecond:   perSecond(a.WriteBytes, b.WriteBytes),
		WritesMergedPerSecond: perSecond(a.WritesMerged, b.WritesMerged),
		WriteAwait:            await(writeTime, writes),
		WriteSize:             mean(float64(b.WriteBytes-a.WriteBytes), writes),
		Await:                 await(readTime+writeTime+discardTime, reads+writes+discards),
		QueueDepth:            sample.DiskTime(a.WeightedTime, b.WeightedTime).Seconds() / interval.Seconds(),
		Utilization:           share(sample.DiskTime(a.BusyTime, b.BusyTime), interval),
	}
	if a.Has&b.Has&sample.HasDiscards != 0 {
		d.DiscardsPerSecond = new(perSecond(a.Discards, b.Discards))
		d.DiscardBytesPerSecond = new(perSecond(a.DiscardBytes, b.DiscardBytes))
		d.DiscardAwait = await(discardTime, discards)
	}
	if a.Has&b.Has&sample.HasFlushes != 0 {
		d.FlushesPerSecond = new(perSecond(a.Flushes, b.Flushes))
		d.FlushAwait = await(sample.DiskTime(a.FlushTime, b.FlushTime), b.Flushes-a.Flushes)
	}
	return d
}

// await is how many milliseconds an operation took; nil where there was none.
func await(total time.Duration, operations uint64) *float64 {
	return mean(total.Seconds()*1000, operations)
}

func mean(total float64, n uint64) *float64 {
	if n == 0 {
		return nil
	}
	return new(total / float64(n))
}
