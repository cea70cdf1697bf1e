package sample

import "time"

// Disk holds the 17 values of one line of /proc/diskstats, named as in Documentation/block/stat.rst and numbered as in
// Documentation/admin-guide/iostats.rst. The kernel prints times as 32-bit numbers of milliseconds; a DiskNormalizer
// removes their wraps.
type Disk struct {
	Name string `json:"name"`           // as in /dev and /proc/diskstats
	Leaf bool   `json:"leaf,omitempty"` // not a partition and not stacked on other devices: sums over disks add these only

	// Layer is a device that is stacked on others or on a file, such as dm, md and loop devices. On are the whole devices
	// directly below it, separated by spaces. It is empty if they are not known, or if the file is in memory.
	Layer bool   `json:"layer,omitempty"`
	On    string `json:"on,omitempty"`

	ReadIOs    uint64        `json:"reads"`        // reads completed (field 1)
	ReadMerges uint64        `json:"reads_merged"` // read requests merged into another (field 2)
	ReadBytes  uint64        `json:"read_bytes"`   // the kernel counts sectors of 512 bytes (field 3)
	ReadTicks  time.Duration `json:"read_time"`    // summed over reads, time in the queue included (field 4)

	WriteIOs    uint64        `json:"writes"`        // writes completed (field 5)
	WriteMerges uint64        `json:"writes_merged"` // write requests merged into another (field 6)
	WriteBytes  uint64        `json:"write_bytes"`   // field 7
	WriteTicks  time.Duration `json:"write_time"`    // summed over writes (field 8)

	InFlight    uint64        `json:"in_flight"`     // operations in flight at this moment, not a counter (field 9)
	IOTicks     time.Duration `json:"busy_time"`     // with an operation in flight, sampled once per jiffy (field 10)
	TimeInQueue time.Duration `json:"weighted_time"` // operations in flight x time (field 11)

	DiscardIOs    uint64        `json:"discards,omitempty"`        // discards completed (field 12, Linux 4.18)
	DiscardMerges uint64        `json:"discards_merged,omitempty"` // discard requests merged into another (field 13)
	DiscardBytes  uint64        `json:"discard_bytes,omitempty"`   // field 14
	DiscardTicks  time.Duration `json:"discard_time,omitempty"`    // summed over discards (field 15)

	FlushIOs   uint64        `json:"flushes,omitempty"`    // flush requests completed (field 16, Linux 5.5)
	FlushTicks time.Duration `json:"flush_time,omitempty"` // summed over flush requests (field 17)

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
func (d *Disk) Unused() bool { return d.ReadIOs+d.WriteIOs+d.DiscardIOs == 0 }

// Continues reports whether d and an earlier reading come from the same run of the counters, so that their difference
// is what the disk did in between.
func (d *Disk) Continues(earlier *Disk) bool { return d.Reset.Mono == earlier.Reset.Mono }

// DiskDelta is what a disk did in an interval. The counters of Disk hold their growth, and Has the columns that both
// readings have. The other fields are from the later reading.
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
			&d.ReadIOs, &d.ReadMerges, &d.ReadBytes, &d.WriteIOs, &d.WriteMerges, &d.WriteBytes,
			&d.DiscardIOs, &d.DiscardMerges, &d.DiscardBytes, &d.FlushIOs,
		}, [...]*time.Duration{
			&d.ReadTicks, &d.WriteTicks, &d.IOTicks, &d.TimeInQueue, &d.DiscardTicks, &d.FlushTicks,
		}
}

// ReadAwait returns the mean time of a read in seconds, as r_await of iostat.
func (d *DiskDelta) ReadAwait() (seconds float64, ok bool) { return Await(d.ReadTicks, d.ReadIOs) }

// WriteAwait returns the mean time of a write in seconds, as w_await of iostat.
func (d *DiskDelta) WriteAwait() (seconds float64, ok bool) { return Await(d.WriteTicks, d.WriteIOs) }

// QueueDepth returns the mean number of operations in flight, as aqu-sz of iostat.
func (d *DiskDelta) QueueDepth() float64 {
	return QueueDepth(d.TimeInQueue.Seconds(), d.Interval.Seconds())
}

// Utilization returns the share of the interval with an operation in flight, as %util of iostat.
func (d *DiskDelta) Utilization() float64 {
	return Utilization(d.IOTicks.Seconds(), d.Interval.Seconds())
}

// Await returns the mean time of an operation in seconds, from submission to completion. It reports false where no
// operation completed.
func Await(total time.Duration, operations uint64) (seconds float64, ok bool) {
	return PerOperation(total.Seconds(), operations)
}

// PerOperation returns the mean of a sum over operations. It reports false where no operation completed.
func PerOperation(sum float64, operations uint64) (mean float64, ok bool) {
	if operations == 0 {
		return 0, false
	}
	return sum / float64(operations), true
}

// QueueDepth returns the mean number of operations in flight, from the growth of TimeInQueue in seconds.
func QueueDepth(timeInQueue, interval float64) float64 { return timeInQueue / interval }

// Utilization returns the share of an interval with an operation in flight, from the growth of IOTicks in
// seconds. The kernel samples this time once per jiffy, so that it can exceed the interval a little.
func Utilization(ioTicks, interval float64) float64 { return min(1, ioTicks/interval) }
