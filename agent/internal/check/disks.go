package check

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/stallspan/stallspan/agent/internal/output"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/disk"
)

// disks reads /proc/diskstats, and each device's tree from /sys.
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
		found[0].Message += " A part could not be parsed: " + err.Error() + "."
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
		f.Message = fmt.Sprintf("%s can be read: %s.", output.Count(len(disks), "disk"), list(disks))
	case len(devices) == 0:
		f.State = Limited
		f.Message = "The kernel lists no block device: network storage shows in pressure only."
	default:
		f.State = Limited
		f.Message = fmt.Sprintf("No physical disk is visible among %s: %s.", output.Count(len(others), "device"),
			list(others))
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
		Message: fmt.Sprintf("%s cannot be read (%s): no disk can be named as the cause of a stall.",
			m.path("proc/diskstats"), reason(err))}
	f.Fix = m.procFix() // with /proc mounted, the kernel lacks the file (gVisor), and there is no fix
	if errors.Is(err, fs.ErrPermission) {
		f.Fix = "run stallspan as a user that may read " + m.path("proc/diskstats")
	}
	return f
}

func (m *machine) noSysfs() Finding {
	f := Finding{Area: Disks, What: "disk tree", State: Limited,
		Message: fmt.Sprintf("%s cannot be read: partitions are recognized by name only, and the disk of a file is unknown.",
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

// columns reports which newer columns this kernel does not have.
func (m *machine) columns(devices []sample.Disk) (f Finding, old bool) {
	has := sample.HasDiscards | sample.HasFlushes
	for i := range devices {
		has &= devices[i].Has
	}
	lacks := "flushes (since 5.5)"
	if has&sample.HasDiscards == 0 {
		lacks = "discards (since 4.18) and flushes (since 5.5)"
	}
	return Finding{Area: Disks, What: "disk columns", State: Limited,
		Message: fmt.Sprintf("Linux%s does not count %s; reads and writes are not affected.", m.release(), lacks),
		Fix:     "boot Linux 5.5 or later"}, len(devices) > 0 && has&sample.HasFlushes == 0
}
