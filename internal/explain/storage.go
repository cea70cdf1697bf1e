package explain

import (
	"fmt"
	"strings"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
)

// where names the storage that the window waited for.
func where(r *window.Report) string {
	switch slow := r.SlowDevice; {
	case slow != nil && slow.Limit != nil:
		return held(slow)
	case r.NoDevice:
		return ", but no device of this machine explains it" + quickest(r)
	case slow != nil:
		if text := served(&slow.DiskUse); text != "" {
			return text + below(slow)
		}
	case len(r.Disks) > 0:
		if text := served(&r.Disks[0]); text != "" {
			return text
		}
	}
	if len(r.Mounts) > 0 {
		return ": " + mountsUsed(r)
	}
	return ""
}

// served says what a device did; "" if that was nothing.
func served(d *window.DiskUse) string {
	if await, ok := sample.Await(d.ReadTime, d.ReadOperations); ok && d.ReadBytes >= d.WriteBytes {
		return fmt.Sprintf(": %s read %s from %s, %s each, await %s%s", count(d.ReadOperations, "operation"),
			Size(d.ReadBytes), d.Name, Size(d.ReadBytes/d.ReadOperations), Duration(await), queue(d))
	}
	if await, ok := sample.Await(d.WriteTime, d.WriteOperations); ok {
		return fmt.Sprintf(": %s wrote %s to %s, await %s%s", count(d.WriteOperations, "operation"),
			Size(d.WriteBytes), d.Name, Duration(await), queue(d))
	}
	return ""
}

// below reports how much faster the devices under a slow layer were.
func below(slow *window.SlowDevice) string {
	var names []string
	for i := range slow.Below {
		d := &slow.Below[i]
		total, operations := d.ReadTime, d.ReadOperations
		if slow.WriteBytes > slow.ReadBytes {
			total, operations = d.WriteTime, d.WriteOperations
		}
		if await, ok := sample.Await(total, operations); ok && len(names) < maxBelow {
			names = append(names, d.Name+" "+Duration(await))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "; below it: " + strings.Join(names, ", ")
}

// maxBelow bounds the devices of below.
const maxBelow = 3

// held says what a limit of a cgroup held back.
func held(slow *window.SlowDevice) string {
	did := "reads from "
	if slow.Limit.Kind == sample.WriteBytesLimit || slow.Limit.Kind == sample.WritesLimit {
		did = "writes to "
	}
	return ": " + did + slow.Limit.Device + " are limited to " + rate(slow.Limit) + " by " + setter(slow.Limit)
}

// rate is what a limit allows: "95.4 MiB/s".
func rate(l *window.Limited) string {
	allowed := *l.Value(l.Kind)
	if l.Kind == sample.ReadsLimit || l.Kind == sample.WritesLimit {
		return count(allowed, "operation") + "/s"
	}
	return Size(allowed) + "/s"
}

// setter is where a limit is set: "io.max of cgroup /jobs/a".
func setter(l *window.Limited) string { return string(l.Control) + " of cgroup " + l.Cgroup }

// quickest shows that the operations of the disks took less than the wait, or names what was in use besides disks.
func quickest(r *window.Report) string {
	switch {
	case len(r.Mounts) > 0:
		return ": " + mountsUsed(r)
	case len(r.Disks) == 0:
		return ""
	}
	return served(&r.Disks[0])
}

// queue is a disk's queue depth; "" if only a part of the window is known.
func queue(d *window.DiskUse) string {
	if d.Partial {
		return ""
	}
	return fmt.Sprintf(", queue %.1f", d.QueueDepth)
}

// mountsUsed names file systems without a disk of this machine, with their servers.
func mountsUsed(r *window.Report) string {
	names := make([]string, 0, 3)
	for _, m := range r.Mounts[:min(3, len(r.Mounts))] {
		from := m.Type
		if m.Source != "" && m.Source != m.Type && m.Source != "none" {
			from += " from " + m.Source
		}
		names = append(names, m.Point+" ("+from+")")
	}
	return "its data came from no disk of this machine; mounts in use: " + strings.Join(names, ", ")
}
