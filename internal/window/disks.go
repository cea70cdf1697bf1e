package window

import (
	"cmp"
	"slices"
	"strings"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/sample"
)

// disks sets what the disks did. It returns those that were added or removed in the window, or whose counters
// restarted.
func (b *builder) disks() (reset []string) {
	for _, name := range b.machine.Leaves {
		use, known := b.diskUse(history.DiskReadIOs, name)
		if use.Partial {
			b.Interrupted, reset = true, append(reset, name)
		}
		if !known || use.ReadOperations+use.WriteOperations == 0 {
			continue
		}
		b.Disks = append(b.Disks, use)
	}
	slices.SortStableFunc(b.Disks, func(x, y DiskUse) int {
		if x.Under != y.Under {
			if x.Under {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(y.moved(), x.moved()), strings.Compare(x.Name, y.Name))
	})
	slices.Sort(reset)
	return reset
}

// DeviceFields are fields by the name of a device.
type DeviceFields map[string]sample.Fields

// diskUse returns what a device did in the window. first is DiskReadIOs for a disk, and LayerReadIOs for a layer.
func (b *builder) diskUse(first history.Series, name string) (use DiskUse, known bool) {
	return b.diskBetween(first, name, b.from(), b.to())
}

func (b *builder) diskBetween(first history.Series, name string, from, to history.Point) (use DiskUse, known bool) {
	var all [history.DiskTimeInQueue + 1]history.Delta
	known = b.history.BetweenAll(first, name, from, to, all[:])
	use = DiskUse{
		Name:            name,
		Under:           slices.Contains(b.Seen.Under, name),
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
		}, interval, b.machine.Lacks[name])
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

// mounts keeps the mounts that were in use in the window. If next to nothing of the disks' I/O can be the job's, the
// job waited for the mounts, and the disks are left out. FUSE I/O is not counted as fetched by the job. Some network
// file systems count what they fetch as if it came from a disk; then the disks read far less than the job fetched.
func (b *builder) mounts() {
	for _, mount := range b.machine.Mounts {
		if mount.LastSeen >= b.Start.Mono-MaxMountAge {
			b.Mounts = append(b.Mounts, mount)
		}
	}
	b.mountUses()
	fetched, known := b.between(history.JobReadBytes, b.machine.Target.Job)
	stored, _ := b.between(history.JobWriteBytes, b.machine.Target.Job)
	if len(b.Mounts) == 0 || !known {
		return
	}
	var read, moved float64
	for i := range b.Disks {
		read += float64(b.Disks[i].ReadBytes)
		moved += float64(b.Disks[i].moved())
	}
	if fetched.Value+stored.Value < minMovedShare*moved || read < halfBytes*fetched.Value {
		b.Disks = nil
	}
}

// ceilings compares each disk with the highest throughput that it ever reached.
func (b *builder) ceilings() {
	interval := b.Duration().Seconds()
	for i := range b.Disks {
		d := &b.Disks[i]
		share := func(bytes uint64, ceiling float64) float64 {
			if ceiling <= 0 || interval <= 0 || d.Partial {
				return 0
			}
			if ratio := float64(bytes) / interval / ceiling; ratio < outrun {
				return min(1, ratio)
			}
			return 0
		}
		now, before := ceilingOf(b.machine.Ceilings, d.Name), ceilingOf(b.Ceilings, d.Name)
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

// fetched returns how many bytes the window's job fetched from storage, if that is readable.
func (b *builder) fetched() (bytes float64, ok bool) {
	if b.machine.Target.Job == "" || b.machine.NoJobReads {
		return 0, false
	}
	d, ok := b.between(history.JobReadBytes, b.machine.Target.Job)
	return d.Value, ok && !d.Reset
}

// readFrom lists the disks that the window can have read from: those under its path, or, without a path, those that
// read at least a tenth of what the job fetched. If the job's own reads are not known, only the path counts.
func (b *builder) readFrom() (names []string) {
	fetched, known := b.fetched()
	if known && fetched == 0 || !known && len(b.Seen.Under) == 0 {
		return nil
	}
	for i := range b.Disks {
		d := &b.Disks[i]
		candidate := d.Under
		if len(b.Seen.Under) == 0 {
			candidate = float64(d.ReadBytes) >= minMovedShare*fetched
		}
		if candidate && d.ReadBytes > 0 {
			names = append(names, d.Name)
		}
	}
	return names
}

// ReadFrom returns the From of a report on each window, without the rest of the report. machine returns the Machine of
// a window. All windows use the same Report, because one for each would take most of the memory of a load among many.
func ReadFrom(h *history.History, windows []*Window, machine func(*Window) Machine) [][]string {
	if len(windows) == 0 {
		return nil
	}
	from := make([][]string, len(windows))
	b := &builder{&Report{}, h, &Machine{}}
	for i, w := range windows {
		*b.Report, *b.machine = Report{Window: *w}, machine(w)
		b.disks()
		b.mounts()
		from[i] = b.readFrom()
	}
	return from
}

// worksWith reports whether the window reads from or writes to a disk. These are the disks under its path, including
// one that hangs and did nothing; without a path, the disks that it can have read from and those that moved a part of
// all bytes. One that moved far more than the job did is another one's.
func (b *builder) worksWith(disk string) bool {
	if len(b.Seen.Under) > 0 {
		return slices.Contains(b.Seen.Under, disk)
	}
	var all, moved uint64
	for i := range b.Disks {
		all += b.Disks[i].moved()
		if b.Disks[i].Name == disk {
			moved = b.Disks[i].moved()
		}
	}
	if own := b.Own; own != nil && float64(own.Read+own.Written) < minMovedShare*float64(moved) {
		return false
	}
	return slices.Contains(b.From, disk) || moved > 0 && float64(moved) >= minMovedShare*float64(all)
}
