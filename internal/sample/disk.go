package sample

import "time"

// Disk holds the 17 values of one line of /proc/diskstats (Documentation/admin-guide/iostats.rst). The kernel prints
// times in milliseconds as 32-bit numbers; a DiskNormalizer removes their wraps.
type Disk struct {
	Name string `json:"name"`           // as in /dev and /proc/diskstats
	Leaf bool   `json:"leaf,omitempty"` // not a partition and not stacked on other devices: sums over disks add these only

	Reads       uint64        `json:"reads"`        // read operations completed (field 1)
	ReadsMerged uint64        `json:"reads_merged"` // read requests merged into another (field 2)
	ReadBytes   uint64        `json:"read_bytes"`   // sectors of 512 bytes x 512 (field 3)
	ReadTime    time.Duration `json:"read_time"`    // summed over operations (field 4)

	Writes       uint64        `json:"writes"`        // field 5
	WritesMerged uint64        `json:"writes_merged"` // field 6
	WriteBytes   uint64        `json:"write_bytes"`   // field 7
	WriteTime    time.Duration `json:"write_time"`    // field 8

	InFlight     uint64        `json:"in_flight"`     // operations in flight at this moment, not a counter (field 9)
	BusyTime     time.Duration `json:"busy_time"`     // with an operation in flight, sampled once per jiffy (field 10)
	WeightedTime time.Duration `json:"weighted_time"` // operations in flight x time (field 11)

	Discards       uint64        `json:"discards,omitempty"`        // field 12, Linux 4.18
	DiscardsMerged uint64        `json:"discards_merged,omitempty"` // field 13
	DiscardBytes   uint64        `json:"discard_bytes,omitempty"`   // field 14
	DiscardTime    time.Duration `json:"discard_time,omitempty"`    // field 15

	Flushes   uint64        `json:"flushes,omitempty"`    // field 16, Linux 5.5
	FlushTime time.Duration `json:"flush_time,omitempty"` // field 17

	Has Fields `json:"has,omitempty"`

	// Reset is the time of the last reading before the counters restarted: the device was replaced or plugged in
	// again. Zero means that they have counted since boot. Set by a DiskNormalizer.
	Reset Stamp `json:"reset,omitzero"`
}

// Fields says which of the later /proc/diskstats columns this kernel prints.
type Fields uint8

const (
	HasDiscards Fields = 1 << iota // Linux 4.18 and later
	HasFlushes                     // Linux 5.5 and later
)

// Unused reports whether the device has completed no operation so far.
func (d *Disk) Unused() bool { return d.Reads+d.Writes+d.Discards == 0 }

// Continues reports whether d and an earlier reading come from the same run of the counters, so that their difference
// is what the disk did in between.
func (d *Disk) Continues(earlier *Disk) bool { return d.Reset.Mono == earlier.Reset.Mono }

// DiskDelta is what a disk did in an interval. The counters of Disk hold their growth; the other fields are those of
// the later reading.
type DiskDelta struct {
	Disk
	Interval time.Duration
}

// Since returns what the disk did in the interval since an earlier reading. It reports false where the counters
// restarted in between, or where the interval is empty.
func (d *Disk) Since(earlier *Disk, interval time.Duration) (delta DiskDelta, ok bool) {
	if interval <= 0 || !d.Continues(earlier) {
		return DiskDelta{}, false
	}
	delta = DiskDelta{*d, interval}
	counts, times := delta.counters()
	earlierCounts, earlierTimes := earlier.counters()
	for i := range counts {
		*counts[i] -= *earlierCounts[i]
	}
	for i := range times {
		*times[i] -= *earlierTimes[i]
	}
	delta.Has &= earlier.Has
	return delta, true
}

// counters returns all fields that only grow.
func (d *Disk) counters() (counts [10]*uint64, times [6]*time.Duration) {
	return [...]*uint64{
			&d.Reads, &d.ReadsMerged, &d.ReadBytes, &d.Writes, &d.WritesMerged, &d.WriteBytes,
			&d.Discards, &d.DiscardsMerged, &d.DiscardBytes, &d.Flushes,
		}, [...]*time.Duration{
			&d.ReadTime, &d.WriteTime, &d.BusyTime, &d.WeightedTime, &d.DiscardTime, &d.FlushTime,
		}
}

// ReadAwait returns the mean time of a read in seconds, as r_await of iostat.
func (d *DiskDelta) ReadAwait() (seconds float64, ok bool) { return Await(d.ReadTime, d.Reads) }

// WriteAwait returns the mean time of a write in seconds, as w_await of iostat.
func (d *DiskDelta) WriteAwait() (seconds float64, ok bool) { return Await(d.WriteTime, d.Writes) }

// QueueDepth returns the mean number of operations in flight, as aqu-sz of iostat.
func (d *DiskDelta) QueueDepth() float64 {
	return QueueDepth(d.WeightedTime.Seconds(), d.Interval.Seconds())
}

// Utilization returns the share of the interval with an operation in flight, as %util of iostat.
func (d *DiskDelta) Utilization() float64 {
	return Utilization(d.BusyTime.Seconds(), d.Interval.Seconds())
}

// Await returns the mean time of an operation in seconds, from submission to completion. It reports false where no
// operation completed.
func Await(total time.Duration, operations uint64) (seconds float64, ok bool) {
	if operations == 0 {
		return 0, false
	}
	return total.Seconds() / float64(operations), true
}

// QueueDepth returns the mean number of operations in flight, from the growth of the weighted time in seconds.
func QueueDepth(weighted, interval float64) float64 { return weighted / interval }

// Utilization returns the share of an interval with an operation in flight, from the growth of the busy time in
// seconds. The kernel samples this time once per jiffy, so that it can exceed the interval a little.
func Utilization(busy, interval float64) float64 { return min(1, busy/interval) }
