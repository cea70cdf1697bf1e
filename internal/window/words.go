package window

import (
	"fmt"
	"slices"
	"strings"
)

// who says what worked, and how much of the time.
func (r *Report) who(s shares) string {
	who := "The GPU was busy " + percent(s.busy)
	if len(r.GPUIDs) > 1 {
		who = fmt.Sprintf("The %d GPUs were busy %s", len(r.GPUIDs), percent(s.busy))
	}
	if len(r.GPUIDs) == 0 {
		who = "The program was on the CPU " + percent(s.cpu)
		if r.Unattributed() {
			who = "On the whole machine, the busiest core was at work " + percent(s.cpu)
		}
	}
	return who
}

// finding says in one sentence what was seen.
func (r *Report) finding(s shares) string {
	return strings.TrimSuffix(r.seen(s), ".") + r.warmth() + r.neighbour() + r.lacking() + "."
}

func (r *Report) seen(s shares) string {
	who := r.who(s)
	if r.Unattributed() && r.Verdict != StorageBound {
		return who + " of the time" + r.waited(" and somebody waited for storage ", s, ": whose that was is not known") + "."
	}
	switch r.Verdict {
	case GPUBound:
		return who + " of the time" + r.heavyIO() + "."
	case StorageBound:
		if r.Unattributed() {
			return who + " and somebody waited for storage " + percent(s.storage) + " of the time" + r.where() + "."
		}
		return who + " and waited for storage " + percent(s.storage) + " of the time" + r.where() + "."
	case CPUBound:
		if len(r.GPUIDs) == 0 {
			return who + " of the time" + r.waited(" and waited for storage ", s, "") + "."
		}
		return who + " and waited for the CPU work of the input pipeline " + percent(s.cpu) + " of the time."
	case Mixed:
		if len(r.GPUIDs) == 0 {
			return who + " of the time and waited for storage " + percent(s.storage) + r.where() + "."
		}
		return who + "; it waited for storage " + percent(s.storage) + r.where() + " and for CPU work " + percent(s.cpu) + " of the time."
	default:
		starved := r.Starved.Seconds() / max(r.Duration().Seconds(), 1e-9)
		if s.other >= Thresholds.Other && starved >= s.other/2 {
			return who + " of the time and was ready to work but found no CPU free " + percent(starved) + "."
		}
		if r.hidden(s) && len(r.GPUIDs) > 0 {
			return who + " of the time and waited for CPU work " + percent(s.cpu) + "; " + percent(s.other) +
				" was idle for a cause that was not seen, and " + r.elsewhere() + "."
		}
		if r.unpressed && s.cpu >= Thresholds.Stall && len(r.GPUIDs) > 0 {
			return who + " of the time and waited " + r.waited("for storage ", s, " and ") + "for CPU work " + percent(s.cpu) +
				"; " + percent(s.other) + " was idle for a cause that was not seen."
		}
		if s.other >= Thresholds.Other || r.unpressed && len(r.GPUIDs) == 0 {
			return who + " of the time; " + percent(s.other) + " was idle for a cause that was not seen."
		}
		if r.unpressed {
			return who + " of the time; no single stall that was seen is large (" + r.waited("storage ", s, ", ") + "CPU " +
				percent(s.cpu) + "), and " + percent(s.other) + " was idle for a cause that was not seen."
		}
		return who + " of the time; no single stall is large (storage " + percent(s.storage) + ", CPU " + percent(s.cpu) + ")."
	}
}

// where names the storage that was waited for.
func (r *Report) where() string {
	if len(r.Disks) > 0 {
		d := &r.Disks[0]
		if d.ReadBytes >= d.WriteBytes && d.ReadOperations > 0 {
			return fmt.Sprintf(": %s read %s from %s, %s each, await %s", count(d.ReadOperations, "operation"),
				size(d.ReadBytes), d.Name, size(d.ReadBytes/d.ReadOperations),
				Short(*await(d.ReadTime, d.ReadOperations))) + r.queue(d)
		}
		if d.WriteOperations > 0 {
			return fmt.Sprintf(": %s wrote %s to %s, await %s", count(d.WriteOperations, "operation"),
				size(d.WriteBytes), d.Name, Short(*await(d.WriteTime, d.WriteOperations))) + r.queue(d)
		}
	}
	if len(r.Mounts) > 0 {
		return ": " + r.elsewhere()
	}
	return ""
}

// queue is the mean length of a disk's queue in words; "" where only a part of the window is known of it.
func (r *Report) queue(d *DiskUse) string {
	if slices.Contains(r.torn, d.Name) {
		return ""
	}
	return fmt.Sprintf(", queue %.1f", d.QueueDepth)
}

// elsewhere names the file systems that no disk of this machine lies under.
func (r *Report) elsewhere() string {
	names := make([]string, 0, 3)
	for _, m := range r.Mounts[:min(3, len(r.Mounts))] {
		names = append(names, m.Point+" ("+m.Type+")")
	}
	return "what it moved did not come from a disk of this machine; " + strings.Join(names, ", ") + " was in use"
}

func (r *Report) heavyIO() string {
	for i := range r.Disks {
		if r.Disks[i].QueueDepth >= 1 {
			return ", while " + r.Disks[i].Name + " had a queue of " + fmt.Sprintf("%.1f", r.Disks[i].QueueDepth) + " that did not slow it"
		}
	}
	return ""
}

func percent(share float64) string { return fmt.Sprintf("%.0f %%", share*100) }

func count(n uint64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func size(bytes uint64) string {
	v := float64(bytes)
	for _, unit := range []string{"B", "KiB", "MiB", "GiB"} {
		if v < 1024 {
			return strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0") + " " + unit
		}
		v /= 1024
	}
	return fmt.Sprintf("%.1f TiB", v)
}

// Short writes a duration of seconds with two or three digits and the unit that fits.
func Short(seconds float64) string {
	switch {
	case seconds < 0.9995e-3:
		return fmt.Sprintf("%.0f us", seconds*1e6)
	case seconds < 0.9995:
		return fmt.Sprintf("%.3g ms", seconds*1e3)
	case seconds < 99.95:
		return fmt.Sprintf("%.1f s", seconds)
	default:
		return fmt.Sprintf("%.0f s", seconds)
	}
}
