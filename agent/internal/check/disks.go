package check

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"time"

	"github.com/stallspan/stallspan/agent/internal/output"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/disk"
)

// disks reads /proc/diskstats, and each device's tree from /sys.
func (m *machine) disks(ctx context.Context) []Finding {
	source, err := disk.New(m.Root)
	if err != nil {
		return m.noDisks(err)
	}
	defer func() { _ = source.Close() }()
	var s sample.Sample
	err = source.Read(&s)
	if err != nil && len(s.Disks) == 0 {
		return m.noDisks(err)
	}
	sysfs := exists(m.path("sys/class/block"))
	found := counters(s.Disks)
	if err != nil && sysfs {
		found[0].State = Limited
		found[0].Message += " A part could not be parsed: " + err.Error() + "."
	}
	if !sysfs {
		found = append(found, m.noSysfs()...)
	}
	found = append(append(found, m.columns(s.Disks)...), m.impossible(s.Disks)...)
	return append(found, stuck(ctx, source, s.Disks)...)
}

// stuckFor is how long a disk completes nothing until it is reported. A disk that starts up takes longer: it is no
// fault, but what reads from it waits.
const stuckFor = 2 * time.Second

// stuck finds disks that have operations and complete none.
func stuck(ctx context.Context, source *disk.Source, first []sample.Disk) []Finding {
	waits := func(d sample.Disk) bool { return d.Leaf && d.InFlight > 0 }
	left := slices.DeleteFunc(slices.Clone(first), func(d sample.Disk) bool { return !waits(d) })
	for end := time.Now().Add(stuckFor); len(left) > 0 && time.Now().Before(end); {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(stuckFor / 10):
		}
		var s sample.Sample
		if source.Read(&s) != nil {
			return nil
		}
		left = slices.DeleteFunc(left, func(was sample.Disk) bool {
			return !slices.ContainsFunc(s.Disks, func(d sample.Disk) bool {
				return d.Name == was.Name && waits(d) && d.ReadIOs == was.ReadIOs && d.WriteIOs == was.WriteIOs &&
					d.IOTicks > was.IOTicks // else these are files of another machine
			})
		})
	}
	if len(left) == 0 {
		return nil
	}
	var names []string
	for i := range left {
		names = append(names, left[i].Name)
	}
	f := Finding{Area: Disks, What: "disks that do not answer", Details: map[string]any{"devices": names}}
	return f.as(Limited, "look at dmesg for errors and resets, and at what the disk is on",
		"%s completed nothing for %g s, with operations in flight: what reads there waits.", list(names), stuckFor.Seconds())
}

func counters(devices []sample.Disk) []Finding {
	var disks, others []string
	for i := range devices {
		if devices[i].Leaf {
			disks = append(disks, devices[i].Name)
		} else {
			others = append(others, devices[i].Name)
		}
	}
	f := Finding{Area: Disks, What: "disk counters",
		Details: map[string]any{"disks": nonNil(disks), "other_devices": nonNil(others)}}
	switch {
	case len(disks) > 0:
		return f.as(Seen, "", "%s can be read: %s.", output.Count(len(disks), "disk"), list(disks))
	case len(devices) == 0:
		return f.as(Limited, "", "The kernel lists no block device: network storage shows in pressure only.")
	}
	return f.as(Limited, "", "No physical disk is visible among %s: %s.", output.Count(len(others), "device"),
		list(others))
}

func nonNil(names []string) []string {
	if names == nil {
		return []string{} // an array in JSON
	}
	return names
}

func (m *machine) noDisks(err error) []Finding {
	fix := m.procFix() // with /proc mounted, the kernel lacks the file (gVisor), and there is no fix
	if errors.Is(err, fs.ErrPermission) {
		fix = "run stallspan as a user that may read " + m.path("proc/diskstats")
	}
	return Finding{Area: Disks, What: "disk counters"}.as(Missing, fix,
		"%s cannot be read (%s): no disk can be named as the cause of a stall.", m.path("proc/diskstats"), reason(err))
}

func (m *machine) noSysfs() []Finding {
	fix := "mount -t sysfs sysfs /sys"
	switch {
	case !m.isHost():
		fix = "mount the machine's /sys at " + m.path("sys")
	case len(m.containerSigns()) > 0:
		fix = "docker run -v /sys:/sys:ro ..."
	}
	return Finding{Area: Disks, What: "disk tree"}.as(Limited, fix,
		"%s cannot be read: partitions are recognized by name only, and the disk of a file is unknown.",
		m.path("sys/class/block"))
}

// columns reports which newer columns are missing, of an old kernel or of a file that another program writes.
func (m *machine) columns(devices []sample.Disk) []Finding {
	has := sample.HasDiscards | sample.HasFlushes
	for i := range devices {
		has &= devices[i].Has
	}
	lacks, major, minor := "flushes (since 5.5)", 5, 5
	switch {
	case has&sample.HasFlushes != 0:
		return nil
	case has&sample.HasDiscards == 0:
		lacks = "discards (since 4.18) and flushes (since 5.5)"
		major, minor = 4, 18
	}
	f := Finding{Area: Disks, What: "disk columns"}
	if m.olderThan(major, minor) {
		return f.as(Limited, "boot Linux 5.5 or later",
			"Linux%s does not count %s; reads and writes are not affected.", m.release(), lacks)
	}
	return f.as(Limited, m.countersFix(), "%s lacks %s, which Linux%s counts: another program writes this file.",
		m.path("proc/diskstats"), lacks, m.release())
}

// countersFix is how to get the kernel's own counters.
func (m *machine) countersFix() string {
	if !m.isHost() {
		return "mount the machine's /proc at " + m.path("proc")
	}
	return "run stallspan outside of the container, or without lxcfs over /proc"
}

// sumsFit is how many operations a device may have done since boot for its sums of times to be comparable: none of them
// can have wrapped at 2^32 ms, with a second for each operation.
const sumsFit = 1 << 32 / 1000

// impossible reports the counters of whole devices that cannot be true, by what they are since boot.
func (m *machine) impossible(devices []sample.Disk) (found []Finding) {
	var untimed, layers, inexact, negative, off []string
	for i := range devices {
		d := &devices[i]
		if !d.Leaf && !d.Layer {
			continue
		}
		untimedLayer := d.Layer && d.Has&sample.LacksTimes != 0
		excess := d.IOTicks - d.TimeInQueue
		switch {
		case d.Has&sample.Uncounted != 0:
		case untimedLayer:
			layers = append(layers, d.Name)
		case d.Has&sample.LacksTimes != 0:
			untimed = append(untimed, d.Name)
		case d.InFlight == 0 && d.ReadIOs+d.WriteIOs+d.DiscardIOs < sumsFit &&
			excess > max(d.TimeInQueue, time.Second):
			inexact = append(inexact, d.Name)
		}
		if d.Has&sample.LacksInFlight != 0 {
			negative = append(negative, d.Name)
		}
		if d.Has&sample.Uncounted != 0 {
			off = append(off, d.Name)
		}
	}
	file := m.path("proc/diskstats")
	add := func(names []string, what, fix, message string, args ...any) {
		if len(names) > 0 {
			f := Finding{Area: Disks, What: what, Details: map[string]any{"devices": names}}
			found = append(found, f.as(Limited, fix, message, args...)...)
		}
	}
	add(untimed, "disk times", m.countersFix(), "%s counts the operations of %s, and no time for them: their await, "+
		"queue and utilization are not known, and no stall is measured by them. Another program may write this file.",
		file, list(untimed))
	add(layers, "disk times", "", "The driver of %s counts operations, and no time for them: await, queue and "+
		"utilization are known of the disks below only.", list(layers))
	add(inexact, "disk utilization", "", "Linux%s counts more time with work (io_ticks in %s) than the operations of %s "+
		"took: utilization is at most their queue, and system.disk.io_time is left out.", m.release(), file, list(inexact))
	add(negative, "disk in flight", "", "The number of operations in flight of %s in %s is below zero: it is left out.",
		list(negative), file)
	if len(off) > 0 {
		add(off, "disk counters off", "echo 1 > /sys/block/"+off[0]+"/queue/iostats",
			"The kernel does not count what %s does (queue/iostats is 0): no number and no stall of it is known.", list(off))
	}
	return found
}
