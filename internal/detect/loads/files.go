package loads

import (
	"maps"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/detect"
)

// file returns what is known of a file, or nil if there are too many.
func (d *Detector) file(name string) *file {
	one := d.files[name]
	if one == nil {
		if len(d.files) >= maxFiles {
			return nil
		}
		one = &file{path: name, handles: map[handle]position{}, writers: map[handle]position{},
			mapped: map[int]time.Duration{}}
		_, one.parts = keyOf(name)
		d.files[name] = one
	}
	return one
}

// readOf returns the reading of the model that a file is of; nil without one.
func (d *Detector) readOf(one *file) *transfer {
	key, _ := keyOf(one.path)
	return d.reads[key]
}

// again ends a load whose file is read from its start again.
func (d *Detector) again(one *file, f *detect.Facts) {
	t := d.readOf(one)
	if t == nil || t.covered() < whole*t.size() {
		return
	}
	d.endRead(t, f, true, false)
	one.since, one.done = interval{f.Last, f.At}, false
}

// reopened ends a load whose files were all closed, when one of them is opened again. It does not wait for parts that
// are missing.
func (d *Detector) reopened(one *file, f *detect.Facts) {
	t := d.readOf(one)
	if t == nil || !slices.Contains(t.files, one) || t.active() {
		return
	}
	d.pass(one)
	if t.covered() >= whole*t.size() || f.Last-t.lastClosed().end >= closedFor {
		d.endRead(t, f, false, false)
	}
}

// pass notes that a file is read from an earlier place again: see transfer.distinct.
func (d *Detector) pass(one *file) {
	if t := d.readOf(one); t != nil && slices.Contains(t.files, one) {
		one.passes++
		t.pass = 0
	}
}

func (d *Detector) joinRead(one *file, pid int) {
	if one.done {
		return // it stays open or mapped after its load
	}
	key, _ := keyOf(one.path)
	d.join(d.reads, key, one, pid)
}

// join adds a file to a transfer, which begins with its first file.
func (d *Detector) join(all map[string]*transfer, key string, one *file, pid int) {
	t := all[key]
	if t == nil {
		if len(all) >= maxGroups {
			return
		}
		t = &transfer{key: key, open: one.since, processes: map[int]int{}}
		all[key] = t
	}
	if !slices.Contains(t.files, one) {
		t.files = append(t.files, one)
		one.passes, one.high = 0, 0
		t.named = t.named || likely(one.path) != unnamed
		if one.since.start < t.open.start {
			t.open = one.since
		}
	}
	t.parts = max(t.parts, one.parts)
	t.processes[pid]++
	t.drives = t.drives || d.process(pid).Drives
}

// endHandles drops what a look does not show any more.
func (d *Detector) endHandles(one *file, f *detect.Facts) {
	was, wrote := one.active(), len(one.writers) > 0
	if !was && !wrote {
		return
	}
	last := f.Last
	gone := func(pid int, seen time.Duration) bool {
		if seen == f.At {
			return false
		}
		last = min(last, d.lastOf(pid, f))
		return true
	}
	unmapped := func(pid int, seen time.Duration) bool {
		if maps := d.process(pid).MapsLast; seen != f.At && maps > 0 {
			last = min(last, maps)
		}
		return gone(pid, seen)
	}
	maps.DeleteFunc(one.handles, func(h handle, x position) bool { return gone(h.pid, x.seen) })
	maps.DeleteFunc(one.writers, func(h handle, x position) bool { return gone(h.pid, x.seen) })
	maps.DeleteFunc(one.mapped, unmapped)
	if was && !one.active() || wrote && len(one.writers) == 0 {
		one.closed = interval{last, f.At}
	}
}

// lastOf returns up to when it is known what a process had open before this look.
func (d *Detector) lastOf(pid int, f *detect.Facts) time.Duration {
	if last := d.process(pid).Last; last > 0 {
		return min(last, f.Last)
	}
	return f.Last
}

// forget drops files that were not open for long.
func (d *Detector) forget(now time.Duration) {
	for name, one := range d.files {
		if !one.active() && len(one.writers) == 0 && now-max(one.seen, one.closed.end) > time.Minute {
			used := func(t *transfer) bool { return slices.Contains(t.files, one) }
			if !anyOf(d.reads, used) && !anyOf(d.writes, used) {
				delete(d.files, name)
			}
		}
	}
}
