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

// Fields says which of the later /proc/diskstats columns this kernel prints, and which values cannot be true. Those are
// set by a DiskNormalizer and by Since.
type Fields uint16

const (
	HasDiscards Fields = 1 << iota // Linux 4.18 and later
	HasFlushes                     // Linux 5.5 and later

	// A time stands still while operations complete, as in a container with lxcfs, and for md devices before Linux 5.14.
	LacksReadTime
	LacksWriteTime
	LacksDiscardTime
	LacksFlushTime
	LacksQueue
	LacksIOTicks

	// BusyTooLong: IOTicks grew by more than the operations took, or by more than the interval. Linux 5.7 and later count
	// whole jiffies from one operation to the next.
	BusyTooLong

	// LacksInFlight: the kernel's number of operations in flight fell below zero. InFlight is then 0.
	LacksInFlight

	// Uncounted: queue/iostats is 0, so all counters stand still, whatever the device does.
	Uncounted

	columns = HasDiscards | HasFlushes

	// LacksTimes: how long the operations of the device took is not known.
	LacksTimes = LacksReadTime | LacksWriteTime | LacksQueue
)

// Lacks returns only what cannot be true.
func (f Fields) Lacks() Fields { return f &^ columns }

// Unused reports whether the device has completed no operation so far, or none that counts.
func (d *Disk) Unused() bool { return d.completed() == 0 || d.Has&Uncounted != 0 }

// Continues reports whether d and an earlier reading come from the same run of the counters, so that their difference
// is what the disk did in between.
func (d *Disk) Continues(earlier *Disk) bool { return d.Reset.Mono == earlier.Reset.Mono }

// DiskDelta is what a disk did in an interval. The counters of Disk hold their growth, and Has the columns that both
// readings have and what cannot be true. The other fields are from the later reading.
type DiskDelta struct {
	Disk
	Interval time.Duration

	stuck uint64 // operations that were in flight at both ends, if none completed in between
}

// Since returns what the disk did in the interval since an earlier reading. It reports false where the counters
// restarted in between, or where the interval is empty.
func (d *Disk) Since(earlier *Disk, interval time.Duration) (delta DiskDelta, ok bool) {
	if interval <= 0 || !d.Continues(earlier) {
		return DiskDelta{}, false
	}
	delta = DiskDelta{Disk: *d, Interval: interval}
	counts, times := delta.counters()
	earlierCounts, earlierTimes := earlier.counters()
	for i := range counts {
		*counts[i] -= *earlierCounts[i]
	}
	for i := range times {
		*times[i] -= *earlierTimes[i]
	}
	delta.Has = d.Has&earlier.Has&columns | (d.Has|earlier.Has)&^columns
	if delta.completed() == 0 {
		delta.stuck = min(d.InFlight, earlier.InFlight)
	}
	delta.judge(earlier.InFlight > 0)
	return delta, true
}

// NewDiskDelta returns what a disk did in an interval, from the growth of its counters. lacks is what is known of the
// device. How many operations are in flight is not known.
func NewDiskDelta(growth Disk, interval time.Duration, lacks Fields) DiskDelta {
	d := DiskDelta{Disk: growth, Interval: interval}
	d.Has |= lacks
	if d.completed() == 0 && lacks&LacksInFlight == 0 {
		d.InFlight = 1 // one may take longer than the interval
	}
	d.judge(true)
	return d
}

// Resolution of the kernel's counters, and the operations that need more than that on any device.
const (
	manyOperations = 100                    // of 10 us each: a millisecond, the unit of the kernel's times
	longestJiffy   = 10 * time.Millisecond  // in which Linux counts IOTicks, and the times of bio-based devices
	carriedOver    = time.Second            // of an operation that began before the interval
	timedQueue     = 100 * time.Millisecond // of operations, which take at least a jiffy together
)

// judge sets what cannot be true. before: an operation may have been in flight at the begin.
func (d *DiskDelta) judge(before bool) {
	for _, t := range d.times() {
		if t.operations >= manyOperations && *t.time == 0 {
			d.Has |= t.lacks
		}
	}
	d.judgeQueue()
	if d.completed() >= manyOperations && d.IOTicks == 0 && (d.Has&LacksQueue != 0 || d.TimeInQueue >= timedQueue) {
		d.Has |= LacksIOTicks
	}
	most := d.Interval
	if before {
		most += min(d.TimeInQueue, carriedOver)
	}
	if d.Has&LacksQueue == 0 && d.InFlight == 0 {
		most = min(most, d.TimeInQueue)
	}
	if d.IOTicks > most+d.Interval/10+2*longestJiffy {
		d.Has |= BusyTooLong
	}
}

const timeSums = 5 // times that are sums over operations

// judgeQueue marks the time in queue where the kernel computes it from a time that it does not count, as Linux 5 and
// later do.
func (d *Disk) judgeQueue() {
	if d.Has&(LacksReadTime|LacksWriteTime) != 0 &&
		d.TimeInQueue <= d.ReadTicks+d.WriteTicks+d.DiscardTicks+d.FlushTicks+longestJiffy {
		d.Has |= LacksQueue
	}
}

// timed is a sum of times, the operations that it is summed over, and what is lacking if it stands still.
type timed struct {
	operations uint64
	time       *time.Duration
	lacks      Fields
}

func (d *Disk) times() [timeSums]timed {
	return [...]timed{
		{d.ReadIOs, &d.ReadTicks, LacksReadTime}, {d.WriteIOs, &d.WriteTicks, LacksWriteTime},
		{d.DiscardIOs, &d.DiscardTicks, LacksDiscardTime}, {d.FlushIOs, &d.FlushTicks, LacksFlushTime},
		{d.completed(), &d.TimeInQueue, LacksQueue},
	}
}

// completed is the number of operations. Flushes are left out: some devices count those of others.
func (d *Disk) completed() uint64 { return d.ReadIOs + d.WriteIOs + d.DiscardIOs }

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
func (d *DiskDelta) ReadAwait() (seconds float64, ok bool) {
	seconds, ok = Await(d.ReadTicks, d.ReadIOs)
	return seconds, ok && d.Has&LacksReadTime == 0
}

// WriteAwait returns the mean time of a write in seconds, as w_await of iostat.
func (d *DiskDelta) WriteAwait() (seconds float64, ok bool) {
	seconds, ok = Await(d.WriteTicks, d.WriteIOs)
	return seconds, ok && d.Has&LacksWriteTime == 0
}

// QueueDepth returns the mean number of operations in flight, as aqu-sz of iostat. Linux adds the time of an operation
// when it completes: while none does, they are those in flight.
func (d *DiskDelta) QueueDepth() (depth float64, ok bool) {
	if d.stuck > 0 && d.TimeInQueue == 0 {
		return float64(d.stuck), true
	}
	return d.TimeInQueue.Seconds() / d.Interval.Seconds(), d.Has&LacksQueue == 0
}

// Stuck reports whether operations are in flight, and none completed in the interval.
func (d *DiskDelta) Stuck() bool { return d.stuck > 0 }

// Utilization returns the share of the interval with an operation in flight: %util of iostat, but at most what the
// operations took. It reports false if the kernel's counter stands still, or says more than all of the interval.
func (d *DiskDelta) Utilization() (ratio float64, ok bool) {
	return d.UtilizationOf(d.IOTicks.Seconds(), d.TimeInQueue.Seconds())
}

// UtilizationOf is Utilization with IOTicks and TimeInQueue in seconds, which may be interpolated.
func (d *DiskDelta) UtilizationOf(ioTicks, inQueue float64) (ratio float64, ok bool) {
	interval := d.Interval.Seconds()
	ratio = ioTicks / interval
	if d.Has&LacksQueue == 0 {
		ratio = min(ratio, (inQueue+d.unfinished())/interval)
	}
	impossible := ratio > 1 && d.Has&BusyTooLong != 0
	return min(1, ratio), d.Has&LacksIOTicks == 0 && !impossible
}

// unfinished is the time in seconds that operations which are in flight can have taken: the whole interval each, or
// about as long as the others if IOTicks is not exact.
func (d *DiskDelta) unfinished() float64 {
	each := d.Interval.Seconds()
	if n := d.completed(); n > 0 && d.Has&BusyTooLong != 0 {
		each = min(each, d.TimeInQueue.Seconds()/float64(n))
	}
	return float64(d.InFlight) * each
}

// Await returns the mean time of an operation in seconds, from submission to completion. It reports false where no
// operation completed, and where many took no time: the kernel does not count it.
func Await(total time.Duration, operations uint64) (seconds float64, ok bool) {
	seconds, ok = PerOperation(total.Seconds(), operations)
	return seconds, ok && (total > 0 || operations < manyOperations)
}

// Known returns a value, or nil where it is not known.
func Known(value float64, ok bool) *float64 {
	if !ok {
		return nil
	}
	return &value
}

// PerOperation returns the mean of a sum over operations. It reports false where no operation completed.
func PerOperation(sum float64, operations uint64) (mean float64, ok bool) {
	if operations == 0 {
		return 0, false
	}
	return sum / float64(operations), true
}
