package window

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/sample"
)

// DiskUse is what one disk did in a window. Operations count when they complete.
type DiskUse struct {
	Name            string
	ReadBytes       uint64
	ReadOperations  uint64
	ReadTime        time.Duration // sum over operations
	WriteBytes      uint64
	WriteOperations uint64
	WriteTime       time.Duration
	QueueDepth      float64       // mean number of operations in flight
	BusyRatio       float64       // utilization; on a parallel device it is not a measure of load
	Lacks           sample.Fields // the values above that are not known, because the kernel's counters cannot be true
	Under           bool          // the window's path is on this disk
	Partial         bool          // counters restarted, or the disk was added or removed: the numbers cover a part of it

	// nil if they are not counted, as of a device that is made of others.
	ReadLatency, WriteLatency *Latency

	// Highest throughput over about a second until now, in bytes per second; 0 if unknown.
	ReadCeiling, WriteCeiling float64

	// Mean throughput in the window as a share of the ceiling: of the one before the window, which the window itself
	// cannot have raised, and for reads of the present one. 0 if unknown, as after a window that was clearly faster.
	ReadCeilingRatio, WriteCeilingRatio float64
	ReadCeilingRatioNow                 float64

	// ReadFullRatio is the same of the highest throughput that the disk reached before with a queue of reads, or was
	// measured to reach. What one reader at a time gets from a disk does not show what the disk can do.
	ReadFullRatio float64
}

// NearCeiling reports whether the disk read nearly as fast as it ever had before the window, and as with a queue.
func (d *DiskUse) NearCeiling() bool {
	return d.ReadCeilingRatio >= NearCeiling && d.ReadFullRatio >= NearCeiling
}

// FarFromCeiling reports whether the disk can read much faster than it did.
func (d *DiskUse) FarFromCeiling() bool {
	return d.ReadCeilingRatioNow > 0 && d.ReadCeilingRatioNow <= FarCeiling
}

// disks returns what the disks did, and those that were added or removed in the window, or whose counters restarted.
func (v *view) disks() (uses []DiskUse, reset []string) {
	for _, name := range v.machine.Leaves {
		use, known := v.diskUse(history.DiskReadIOs, name)
		if use.Partial {
			reset = append(reset, name)
		}
		if !known || use.ReadOperations+use.WriteOperations == 0 {
			continue
		}
		uses = append(uses, use)
	}
	open := v.open()
	home := func(d *DiskUse) int {
		if d.Under || len(v.Seen.Under) == 0 && slices.Contains(open, d.Name) {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(uses, func(x, y DiskUse) int {
		return cmp.Or(home(&x)-home(&y), cmp.Compare(y.moved(), x.moved()), strings.Compare(x.Name, y.Name))
	})
	slices.Sort(reset)
	return uses, reset
}

// DeviceFields are fields by the name of a device.
type DeviceFields map[string]sample.Fields

// diskUse returns what a device did in the window. first is DiskReadIOs for a disk, and LayerReadIOs for a layer.
func (v *view) diskUse(first history.Series, name string) (use DiskUse, known bool) {
	return v.diskBetween(first, name, v.from(), v.to())
}

func (v *view) diskBetween(first history.Series, name string, from, to history.Point) (use DiskUse, known bool) {
	var all [history.DiskTimeInQueue + 1]history.Delta
	known = v.history.BetweenAll(first, name, from, to, all[:])
	use = DiskUse{
		Name:            name,
		Under:           slices.Contains(v.Seen.Under, name),
		Partial:         slices.ContainsFunc(all[:], func(d history.Delta) bool { return d.Reset }),
		ReadBytes:       uint64(all[history.DiskReadBytes].Value),
		ReadOperations:  uint64(all[history.DiskReadIOs].Value),
		ReadTime:        seconds(all[history.DiskReadTicks].Value),
		WriteBytes:      uint64(all[history.DiskWriteBytes].Value),
		WriteOperations: uint64(all[history.DiskWriteIOs].Value),
		WriteTime:       seconds(all[history.DiskWriteTicks].Value),
	}
	if interval := to.At - from.At; known && interval > 0 {
		busy, inQueue := all[history.DiskIOTicks].Value, all[history.DiskTimeInQueue].Value
		d := sample.NewDiskDelta(sample.Disk{
			ReadIOs: use.ReadOperations, ReadTicks: use.ReadTime, WriteIOs: use.WriteOperations, WriteTicks: use.WriteTime,
			IOTicks: seconds(busy), TimeInQueue: seconds(inQueue),
		}, interval, v.machine.Lacks[name])
		use.Lacks = d.Has
		if use.Lacks&sample.LacksQueue == 0 {
			use.QueueDepth = inQueue / interval.Seconds()
		}
		if ratio, ok := d.UtilizationOf(busy, inQueue); ok {
			use.BusyRatio = ratio
		} else {
			use.Lacks |= sample.LacksIOTicks
		}
	}
	return use, known
}

// Await returns how long an operation took on average: a read, or else a write. It reports false without one, and
// where the kernel does not count it.
func (d *DiskUse) Await(reads bool) (seconds float64, ok bool) {
	if reads {
		seconds, ok = sample.Await(d.ReadTime, d.ReadOperations)
		return seconds, ok && d.Lacks&sample.LacksReadTime == 0
	}
	seconds, ok = sample.Await(d.WriteTime, d.WriteOperations)
	return seconds, ok && d.Lacks&sample.LacksWriteTime == 0
}

func (d *DiskUse) moved() uint64 { return d.ReadBytes + d.WriteBytes }

// mounts returns those that were in use in the window.
func (v *view) mounts() (inUse []sample.Mount) {
	for _, mount := range v.machine.Mounts {
		if mount.LastSeen >= v.Start.Mono-MaxMountAge {
			inUse = append(inUse, mount)
		}
	}
	return inUse
}

// leavesDisks reports whether next to nothing of the disks' I/O can be the job's. Then the job waited for the mounts.
// FUSE I/O is not counted as fetched by the job. Some network file systems count what they fetch as if it came from a
// disk; then the disks read far less than the job fetched.
func (v *view) leavesDisks(disks []DiskUse, mounts []sample.Mount) bool {
	fetched, known := v.between(history.JobReadBytes, v.machine.Target.Job)
	stored, _ := v.between(history.JobWriteBytes, v.machine.Target.Job)
	var read, moved float64
	for i := range disks {
		read += float64(disks[i].ReadBytes)
		moved += float64(disks[i].moved())
	}
	return len(mounts) > 0 && known &&
		(fetched.Value+stored.Value < minMovedShare*moved || read < halfBytes*fetched.Value)
}

// addCeilings compares each disk with the highest throughput that it ever reached.
func (v *view) addCeilings(disks []DiskUse) {
	interval := v.Duration().Seconds()
	for i := range disks {
		d := &disks[i]
		share := func(bytes uint64, ceiling float64) float64 {
			if ceiling <= 0 || interval <= 0 || d.Partial {
				return 0
			}
			if ratio := float64(bytes) / interval / ceiling; ratio < outrun {
				return min(1, ratio)
			}
			return 0
		}
		now, before := ceilingOf(v.machine.Ceilings, d.Name), ceilingOf(v.Ceilings, d.Name)
		d.ReadCeiling, d.WriteCeiling = now.Read, now.Write
		d.ReadCeilingRatio, d.WriteCeilingRatio = share(d.ReadBytes, before.Read), share(d.WriteBytes, before.Write)
		d.ReadCeilingRatioNow = share(d.ReadBytes, now.Read)
		d.ReadFullRatio = share(d.ReadBytes, before.Full)
	}
}

func ceilingOf(all []sample.Ceiling, disk string) sample.Ceiling {
	if i := slices.IndexFunc(all, func(c sample.Ceiling) bool { return c.Disk == disk }); i >= 0 {
		return all[i]
	}
	return sample.Ceiling{}
}

// readFrom lists the disks that the window can have read from: those under its path, or, without a path, those that
// read at least a tenth of what the job fetched. If the job's own reads are not known, only the path counts.
func (v *view) readFrom(disks []DiskUse) (names []string) {
	fetched, known := v.fetched()
	if known && fetched == 0 || !known && len(v.Seen.Under) == 0 {
		return nil
	}
	for i := range disks {
		d := &disks[i]
		candidate := d.Under
		if len(v.Seen.Under) == 0 {
			candidate = float64(d.ReadBytes) >= minMovedShare*fetched
		}
		if candidate && d.ReadBytes > 0 {
			names = append(names, d.Name)
		}
	}
	if len(v.Seen.Under) == 0 {
		names = v.inUse(names)
	}
	return names
}

// inUse leaves out the disks on which the job has had no file open, unless that is so for all of them.
func (v *view) inUse(disks []string) []string {
	open := v.open()
	used := slices.DeleteFunc(slices.Clone(disks), func(disk string) bool { return !slices.Contains(open, disk) })
	if len(used) == 0 {
		return disks
	}
	return used
}

// ReadFrom returns the From of a report on each window, without the rest of the report. machine returns the Machine of
// a window.
func ReadFrom(h *history.History, windows []*Window, machine func(*Window) Machine) [][]string {
	from := make([][]string, len(windows))
	for i, w := range windows {
		m := machine(w)
		v := &view{w, h, &m}
		if disks, _ := v.disks(); !v.leavesDisks(disks, v.mounts()) {
			from[i] = v.readFrom(disks)
		}
	}
	return from
}

// worksWith reports whether a window reads from or writes to a disk. These are the disks under its path, including one
// that hangs and did nothing; without a path, the disks that it can have read from and those that moved a part of all
// bytes. One that moved far more than the job did, or on which it had no file open, is another one's.
func (f *Facts) worksWith(disk string, underPath []string) bool {
	if len(underPath) > 0 {
		return slices.Contains(underPath, disk)
	}
	var all, moved uint64
	for i := range f.Disks {
		all += f.Disks[i].moved()
		if f.Disks[i].Name == disk {
			moved = f.Disks[i].moved()
		}
	}
	if own := f.Own; own != nil && float64(own.Read+own.Written) < minMovedShare*float64(moved) {
		return false
	}
	mayUse := len(f.opened) == 0 || slices.Contains(f.opened, disk)
	return slices.Contains(f.From, disk) || mayUse && moved > 0 && float64(moved) >= minMovedShare*float64(all)
}
