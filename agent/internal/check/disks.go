package check

import (
	"context"
	"errors"
	"io/fs"

	"github.com/stallspan/stallspan/agent/internal/output"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/disk"
)

// disks reads /proc/diskstats, and each device's tree from /sys.
func (m *machine) disks(context.Context) []Finding {
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
	return append(found, m.columns(s.Disks)...)
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

// columns reports which newer columns this kernel does not have.
func (m *machine) columns(devices []sample.Disk) []Finding {
	has := sample.HasDiscards | sample.HasFlushes
	for i := range devices {
		has &= devices[i].Has
	}
	lacks := "flushes (since 5.5)"
	switch {
	case has&sample.HasFlushes != 0:
		return nil
	case has&sample.HasDiscards == 0:
		lacks = "discards (since 4.18) and flushes (since 5.5)"
	}
	return Finding{Area: Disks, What: "disk columns"}.as(Limited, "boot Linux 5.5 or later",
		"Linux%s does not count %s; reads and writes are not affected.", m.release(), lacks)
}
