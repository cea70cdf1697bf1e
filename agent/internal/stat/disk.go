package stat

import (
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// Disk holds the rates of one block device in an interval, as iostat(1) defines them. Every operation counts in the
// interval in which it completed. A mean over no operations is nil, and so is a value that the kernel does not count,
// or that cannot be true.
type Disk struct {
	Name string `json:"name"`
	Leaf bool   `json:"leaf"` // not a partition and not stacked on other devices

	ReadsPerSecond        float64  `json:"reads_per_s"`             // r/s
	ReadBytesPerSecond    float64  `json:"read_bytes_per_s"`        // rkB/s x 1024
	ReadsMergedPerSecond  float64  `json:"reads_merged_per_s"`      // rrqm/s
	ReadAwait             *float64 `json:"read_await_ms,omitempty"` // r_await: from submission to completion
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

	Await       *float64 `json:"await_ms,omitempty"`    // of reads, writes and discards together
	QueueDepth  *float64 `json:"queue_depth,omitempty"` // aqu-sz: mean number of operations in flight
	Utilization *float64 `json:"utilization,omitempty"` // %util / 100: share of the interval with an operation in flight

	// Inexact: the kernel's time with an operation in flight cannot be true. Utilization is what the operations took.
	Inexact bool `json:"-"`
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
		delete(was, d.Name) // a duplicate name: the first one counts
		if last == nil || d.Unused() {
			continue
		}
		if delta, ok := d.Since(last, interval); ok {
			list = append(list, disk(&delta))
		}
	}
	return list
}

// disk returns the rates of one device.
func disk(d *sample.DiskDelta) Disk {
	perSecond := func(growth uint64) float64 { return float64(growth) / d.Interval.Seconds() }
	rates := Disk{
		Name: d.Name, Leaf: d.Leaf,
		ReadsPerSecond:        perSecond(d.ReadIOs),
		ReadBytesPerSecond:    perSecond(d.ReadBytes),
		ReadsMergedPerSecond:  perSecond(d.ReadMerges),
		ReadAwait:             milliseconds(d.ReadAwait()),
		ReadSize:              mean(float64(d.ReadBytes), d.ReadIOs),
		WritesPerSecond:       perSecond(d.WriteIOs),
		WriteBytesPerSecond:   perSecond(d.WriteBytes),
		WritesMergedPerSecond: perSecond(d.WriteMerges),
		WriteAwait:            milliseconds(d.WriteAwait()),
		WriteSize:             mean(float64(d.WriteBytes), d.WriteIOs),
		QueueDepth:            sample.Known(d.QueueDepth()),
		Utilization:           sample.Known(d.Utilization()),
		Inexact:               d.Has&sample.BusyTooLong != 0,
	}
	if d.Has&(sample.LacksReadTime|sample.LacksWriteTime|sample.LacksDiscardTime) == 0 {
		rates.Await = await(d.ReadTicks+d.WriteTicks+d.DiscardTicks, d.ReadIOs+d.WriteIOs+d.DiscardIOs)
	}
	if d.Has&sample.HasDiscards != 0 {
		rates.DiscardsPerSecond = new(perSecond(d.DiscardIOs))
		rates.DiscardBytesPerSecond = new(perSecond(d.DiscardBytes))
		if d.Has&sample.LacksDiscardTime == 0 {
			rates.DiscardAwait = await(d.DiscardTicks, d.DiscardIOs)
		}
	}
	if d.Has&sample.HasFlushes != 0 {
		rates.FlushesPerSecond = new(perSecond(d.FlushIOs))
		if d.Has&sample.LacksFlushTime == 0 {
			rates.FlushAwait = await(d.FlushTicks, d.FlushIOs)
		}
	}
	return rates
}

// await returns the mean time of an operation in milliseconds, or nil where it is not known.
func await(total time.Duration, operations uint64) *float64 {
	return milliseconds(sample.Await(total, operations))
}

func milliseconds(seconds float64, ok bool) *float64 { return scaled(sample.Known(seconds, ok), 1000) }

func mean(sum float64, operations uint64) *float64 {
	return sample.Known(sample.PerOperation(sum, operations))
}

// Idle reports whether the device did nothing in the interval, as iostat -z decides.
func (d *Disk) Idle() bool {
	sum := d.ReadsPerSecond + d.WritesPerSecond
	for _, p := range []*float64{d.QueueDepth, d.Utilization, d.DiscardsPerSecond, d.FlushesPerSecond} {
		if p != nil {
			sum += *p
		}
	}
	return sum == 0
}
