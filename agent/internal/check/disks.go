package check

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/disk"
)

// disks reads /proc/diskstats and what /sys says about each device.
func (m *machine) disks(context.Context) []Finding {
	source, err := disk.New(m.Root)
	if err != nil {
		return []Finding{m.noDisks(err)}
	}
	defer func() { _ = source.Close() }()
	var s sample.Sample
	err = source.Read(&s)
	if err != nil && len(s.Disks) == 0 {
		return []Finding{m.noDisks(err)}
	}
	sysfs := exists(m.path("sys/class/block"))
	found := []Finding{counters(s.Disks)}
	if err != nil && sysfs {
		found[0].State = Limited
		found[0].Says += " Not all of it was understood: " + err.Error() + "."
	}
	if !sysfs {
		found = append(found, m.noSysfs())
	}
	if f, old := m.columns(s.Disks); old {
		found = append(found, f)
	}
	return found
}

func counters(devices []sample.Disk) Finding {
	var disks, others []string
	for i := range devices {
		if devices[i].Leaf {
			disks = append(disks, devices[i].Name)
		} else {
			others = append(others, devices[i].Name)
		}
	}
	f := Finding{Area: Disks, What: "disk counters", State: Seen,
		Details: map[string]any{"disks": nonNil(disks), "other_devices": nonNil(others)}}
	switch {
	case len(disks) > 0:
		f.Says = fmt.Sprintf("%s can be watched: %s.", number(len(disks), "disk", "disks"), list(disks))
	case len(devices) == 0:
		f.State = Limited
		f.Says = "The kernel lists no block device: what is stored over a network is seen in pressure alone."
	default:
		f.State = Limited
		f.Says = fmt.Sprintf("No disk is in sight among %s: %s.", number(len(others), "device", "devices"), list(others))
	}
	return f
}

func nonNil(names []string) []string {
	if names == nil {
		return []string{} // an array in JSON
	}
	return names
}

func (m *machine) noDisks(err error) Finding {
	f := Finding{Area: Disks, What: "disk counters", State: Missing,
		Says: fmt.Sprintf("%s cannot be read (%s): no disk can be blamed or cleared.", m.path("proc/diskstats"), reason(err))}
	f.Fix = m.procFix() // where /proc is there, this kernel has no such file (gVisor), and nothing would give it one
	if errors.Is(err, fs.ErrPermission) {
		f.Fix = "run stallspan as a user that may read " + m.path("proc/diskstats")
	}
	return f
}

func (m *machine) noSysfs() Finding {
	f := Finding{Area: Disks, What: "disk tree", State: Limited,
		Says: fmt.Sprintf("%s cannot be read: disks are told from partitions by their names, and which disk a file lies on is not known.",
			m.path("sys/class/block"))}
	switch {
	case !m.isHost():
		f.Fix = "mount the machine's /sys at " + m.path("sys")
	case len(m.containerSigns()) > 0:
		f.Fix = "docker run -v /sys:/sys:ro ..."
	default:
		f.Fix = "mount -t sysfs sysfs /sys"
	}
	return f
}

// columns says which later statistics this kernel does not print.
func (m *machine) columns(devices []sample.Disk) (f Finding, old bool) {
	has := sample.HasDiscards | sample.HasFlushes
	for i := range devices {
		has &= devices[i].Has
	}
	lacks := "flushes (5.5 does)"
	if has&sample.HasDiscards == 0 {
		lacks = "discards (4.18 does) and flushes (5.5 does)"
	}
	return Finding{Area: Disks, What: "disk columns", State: Limited,
		Says: fmt.Sprintf("Linux%s does not count %s; reads and writes are not affected.", m.release(), lacks),
		Fix:  "boot Linux 5.5 or later"}, len(devices) > 0 && has&sample.HasFlushes == 0
}
