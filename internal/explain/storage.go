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
	case r.Silence != nil && r.Silence.Disk != "": // it is named; what others did explains nothing
		return ""
	case slow != nil && slow.Limit != nil:
		return held(slow)
	case r.NoDevice:
		return ", but no device of this machine explains it" + quickest(r)
	case slow != nil:
		if did, numbers := served(r, &slow.DiskUse); did != "" {
			return ": " + did + " (" + numbers + below(slow) + ")"
		}
	case len(r.Disks) > 0:
		if did, numbers := served(r, &r.Disks[0]); did != "" {
			return ": " + did + " (" + numbers + ")"
		}
	}
	if len(r.Mounts) > 0 {
		return ": " + mountsUsed(r)
	}
	return ""
}

// served says what a device did and how much of that for the window's program, and then in numbers how long it took;
// "" if it did nothing.
func served(r *window.Report, d *window.DiskUse) (did, numbers string) {
	reads := d.ReadBytes >= d.WriteBytes
	if r.Own != nil && r.Own.Read != r.Own.Written { // others may do the opposite
		reads = r.Own.Read > r.Own.Written
	}
	if d.ReadOperations > 0 && (reads || d.WriteOperations == 0) {
		var own *uint64
		if r.Own != nil {
			own = &r.Own.Read
		}
		return moved(r, d.ReadBytes, own, "read", "from "+d.Name),
			took(d, true, d.ReadOperations, d.ReadBytes, "read", d.ReadLatency)
	}
	if d.WriteOperations > 0 {
		var own *uint64
		if r.Own != nil {
			own = &r.Own.Written
		}
		return moved(r, d.WriteBytes, own, "wrote", "to "+d.Name),
			took(d, false, d.WriteOperations, d.WriteBytes, "write", d.WriteLatency)
	}
	return "", ""
}

// nearlyAll is the share of a device's bytes from which it worked for one program.
const nearlyAll = 0.95

// moved says who moved how much: "141.7 MiB were read from vda, 64 MiB of them by this program". own is nil if the
// program's part is not known.
func moved(r *window.Report, bytes uint64, own *uint64, did, device string) string {
	program := "program"
	if r.Scope == window.Container {
		program = "container"
	}
	passive := map[string]string{"read": "read", "wrote": "written"}[did]
	all := fmt.Sprintf("%s were %s %s", Size(bytes), passive, device)
	switch {
	case r.Scope == window.Host: // it is about all programs anyway
		return all
	case own == nil:
		return all + " by all programs"
	case float64(*own) >= nearlyAll*float64(bytes):
		who := "it" // as the sentence begins with it
		if len(r.GPUIDs) > 0 {
			who = "the " + program
		}
		return fmt.Sprintf("%s %s %s %s", who, did, Size(bytes), device)
	case *own == 0:
		return all + ", none of it by this " + program
	}
	return fmt.Sprintf("%s, %s of them by this %s", all, Size(*own), program)
}

// took says how long the operations of a device took.
func took(d *window.DiskUse, reads bool, operations, bytes uint64, noun string, l *window.Latency) string {
	mean, known := d.Await(reads)
	each := "each took " + Duration(mean) + " on average" + tail(l, mean)
	switch {
	case !known:
		each = "the kernel does not count how long they took"
	case operations == 1:
		each = "it took " + Duration(mean)
	}
	return fmt.Sprintf("%s of %s; %s%s", count(operations, noun), Size(bytes/operations), each, queue(d))
}

// A mean hides the slowest operations if the 99th percentile is so many times as long. It needs so many operations.
const (
	longTail      = 4
	minTailCounts = 200
)

// tail says how long the slowest operations took, where the mean does not show it.
func tail(l *window.Latency, mean float64) string {
	if l == nil || l.Operations < minTailCounts || l.P99.Seconds() < longTail*mean {
		return ""
	}
	return ", and one in a hundred over " + Duration(l.P99.Seconds())
}

// below reports how much faster the devices under a slow layer were.
func below(slow *window.SlowDevice) string {
	var names []string
	for i := range slow.Below {
		d := &slow.Below[i]
		if await, ok := d.Await(slow.WriteBytes <= slow.ReadBytes); ok && len(names) < maxBelow {
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
	d := &r.Disks[0]
	did, numbers := served(r, d)
	if did == "" {
		return ""
	}
	return ": " + did + " (" + numbers + "; " + Duration((d.ReadTime + d.WriteTime).Seconds()) + " in all)"
}

// queue is a disk's queue depth; "" if it is not known, or only for a part of the window.
func queue(d *window.DiskUse) string {
	if d.Partial || d.Lacks&sample.LacksQueue != 0 {
		return ""
	}
	return fmt.Sprintf("; queue depth %.1f", d.QueueDepth)
}
