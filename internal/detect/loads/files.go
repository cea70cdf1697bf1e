package loads

import (
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/stallspan/stallspan/internal/detect"
	"github.com/stallspan/stallspan/internal/source/modelfile"
)

// handle is a file descriptor of a process.
type handle struct{ pid, fd int }

// position is that of a file descriptor in a look.
type position struct {
	at   int64
	seen time.Duration
}

// file is a file of a model.
type file struct {
	path    string
	key     detect.FileKey
	size    int64
	parts   int
	handles map[handle]position   // open for reading
	writers map[handle]position   // open for writing
	mapped  map[int]time.Duration // by process that has mapped it, the last look that saw it
	seen    time.Duration         // the last look that saw it open or mapped
	since   interval              // in which it was opened
	closed  interval              // in which it was closed
	written interval              // by this job
	moved   float64               // bytes by which its positions moved in this look
	done    bool                  // a load of it has ended, and it was not opened again since
	passes  int                   // how often a position went back, or it was opened again, in this transfer
	high    int64                 // the highest position that was seen in this transfer
	reports reports               // of its opens for reading
}

// reports is what reports say of the opens of a file.
type reports struct {
	open    int           // how many there are now
	at      time.Duration // since when there are some
	now     int           // opens since the look before
	spent   time.Duration // time with opens since then
	longest time.Duration // of this, the longest time without a gap
	total   time.Duration // time with opens in this transfer
	most    time.Duration // of this, the longest time without a gap
	shown   bool          // a look saw it open in this transfer
}

// opened takes over an open.
func (r *reports) opened(at time.Duration) {
	if r.open == 0 {
		r.at = at
	}
	r.open++
	r.now++
}

// closed takes over a close. It reports whether it ends the last open that was reported.
func (r *reports) closed(at, last time.Duration) bool {
	if r.open == 0 {
		return false
	}
	if r.open--; r.open > 0 {
		return false
	}
	r.end(at, last)
	return true
}

// end adds the time of opens up to a moment.
func (r *reports) end(at, last time.Duration) {
	took := at - max(r.at, last)
	r.spent += took
	r.total += took
	r.longest, r.most = max(r.longest, took), max(r.most, at-r.at)
}

func (f *file) active() bool { return len(f.handles) > 0 || len(f.mapped) > 0 }

// isWeights reports whether a file may be one with weights.
func isWeights(name string, size int64) bool {
	if modelfile.IsBlob(name) {
		return size >= minBlob
	}
	return modelfile.Is(name) && size >= minSize
}

// isMapped reports whether a file of a look is a mapped blob with weights: vocabularies are read, and not mapped.
func isMapped(x *detect.File) bool {
	return x.Mapped > 0 && x.Size >= minSize && modelfile.IsBlob(x.Path)
}

// isUnnamed reports whether a file of a look has no extension, and may be a model by its size and by who reads it.
func (d *Detector) isUnnamed(x *detect.File) bool {
	return x.Size >= minBlob && !x.Write && d.process(x.PID).Drives && path.Ext(x.Path) == ""
}

// learn takes over which files are open or mapped.
func (d *Detector) learn(f *detect.Facts) {
	for _, one := range d.files {
		one.moved = 0
		one.reports.now, one.reports.spent, one.reports.longest = 0, 0, 0
	}
	for i := range f.Events {
		d.event(&f.Events[i], f)
	}
	for i := range f.Files {
		x := &f.Files[i]
		if modelfile.IsCompiled(x.Path) {
			if x.Write {
				if f.At-d.compile.end > quiet {
					d.compile.start = f.Last
				}
				d.compile.end = f.At
			}
			continue
		}
		partial := modelfile.IsPartial(x.Path)
		known := partial || isWeights(x.Path, x.Size) || isMapped(x) || d.isUnnamed(x) || d.files[x.Path] != nil
		if !known && (!x.Write || !modelfile.Is(x.Path) && !modelfile.IsBlob(x.Path)) {
			continue
		}
		one := d.file(x.Path)
		if one == nil {
			continue
		}
		one.key = x.Key
		d.renamed(one)
		d.saw(one, x, f)
	}
	for _, one := range d.files {
		d.endHandles(one, f)
		if !one.active() { // a close may have been lost
			one.reports.open = 0
		} else if one.reports.open > 0 {
			one.reports.end(f.At, f.Last)
		}
	}
}

// renamed takes over when a file was written from the one that it was: downloads get their name when they are complete.
func (d *Detector) renamed(one *file) {
	if one.written.end > 0 || one.active() || one.seen > 0 {
		return
	}
	for _, end := range modelfile.PartialEnds {
		if old := d.files[one.path+end]; old != nil && len(old.writers) == 0 {
			one.written = old.written
			return
		}
	}
}

// event takes over an exact time. The file itself is learned from the look, or from its size if it is closed already.
func (d *Detector) event(e *detect.Event, f *detect.Facts) {
	if !isWeights(e.Path, e.Size) && (!e.Write || !modelfile.Is(e.Path)) {
		return
	}
	one := d.file(e.Path)
	if one == nil {
		return
	}
	at := interval{e.At, e.At}
	switch {
	case !e.Close:
		if !one.active() && one.reports.open == 0 && len(one.writers) == 0 {
			if one.since = at; !e.Write {
				d.reopened(one, f)
			}
		}
		if !e.Write {
			one.reports.opened(e.At)
			one.done = one.done && one.active()
		}
		one.size = max(one.size, e.Size)
	case e.Write:
		if len(one.writers) == 0 {
			d.join(d.writes, "w:"+path.Dir(one.path), one, e.PID)
		}
		one.size = max(one.size, e.Size)
		one.closed, one.written.end = at, e.At
		if one.written.start == 0 {
			one.written.start = one.since.start
		}
	default:
		if one.size = max(one.size, e.Size); !one.active() {
			d.joinRead(one, e.PID)
		}
		if one.reports.closed(e.At, f.Last) {
			clear(one.handles) // what the look before saw
			clear(one.mapped)
		}
		one.high = max(one.high, e.Offset)
		one.closed = at
	}
}

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

// saw takes over an open file of a look.
func (d *Detector) saw(one *file, x *detect.File, f *detect.Facts) {
	opened := func() {
		if one.since.end <= f.Last || one.since.start != one.since.end { // no event said when
			one.since = interval{d.lastOf(x.PID, f), f.At}
			for i := range f.Processes {
				if p := &f.Processes[i]; p.PID == x.PID {
					one.since.start = min(max(one.since.start, p.Started), f.At)
					if !d.looked && p.Started > 0 { // it may have been opened before the job was followed
						one.since.start = min(p.Started, f.Last)
					}
				}
			}
		}
	}
	one.seen = f.At
	one.size = max(one.size, x.Size)
	switch {
	case x.Write:
		h := handle{x.PID, x.FD}
		if len(one.writers) == 0 {
			opened()
			one.written.start = one.since.start
		}
		one.writers[h] = position{x.Size, f.At}
		one.size = x.Size
		one.written.end = f.At
		if !modelfile.IsPartial(one.path) || !strings.HasSuffix(one.path, ".incomplete") {
			d.nextWrite(one, f)
			d.join(d.writes, "w:"+path.Dir(one.path), one, x.PID)
		}
	case modelfile.IsPartial(one.path):
	case x.FD >= 0:
		h := handle{x.PID, x.FD}
		old, known := one.handles[h]
		before := old.at
		if !one.active() {
			if one.reports.now == 0 { // else the report of its open was taken for that
				d.reopened(one, f)
			}
			opened()
			one.done = false
		}
		if known && x.Offset < before {
			d.pass(one)
		}
		again := known && float64(before) > rewound*float64(one.size) && float64(x.Offset) < 0.1*float64(one.size)
		if again {
			d.again(one, f)
		}
		moved := max(x.Offset-before, before-x.Offset)
		if !known || again {
			moved = x.Offset
		}
		one.moved += float64(moved)
		one.high = max(one.high, x.Offset)
		one.handles[h] = position{x.Offset, f.At}
		if one.done && (!known || moved > 0) { // it stayed open after its load
			one.done, one.since = false, interval{f.Last, f.At}
		}
		d.joinRead(one, x.PID)
		one.reports.shown = true
	case one.closed.start == one.closed.end && d.process(x.PID).MapsAt < one.closed.end:
		return // its mappings were listed before a report of the end of this one
	default:
		last := d.process(x.PID).MapsLast
		if !one.active() {
			opened()
			if last > 0 && one.since.end == f.At { // mappings are listed more rarely than open files
				one.since.start = min(one.since.start, last)
			}
			one.done = false
		}
		_, known := one.mapped[x.PID]
		only := !anyOf(d.reads, func(t *transfer) bool { return t.mapped && t.processes[x.PID] > 0 })
		one.mapped[x.PID] = f.At
		d.joinRead(one, x.PID)
		one.reports.shown = true
		key, _ := keyOf(one.path)
		if t := d.reads[key]; t != nil && !known && only && !one.done { // it may have been touched since it was mapped
			t.early += d.touchedSince(x.PID, max(one.since.start, last))
		}
	}
	if x.FD >= 0 && x.Mapped > 0 && !x.Write {
		one.mapped[x.PID] = f.At
	}
}

// again ends a load whose file is read from its start again.
func (d *Detector) again(one *file, f *detect.Facts) {
	key, _ := keyOf(one.path)
	t := d.reads[key]
	if t == nil || t.covered() < whole*t.size() {
		return
	}
	d.endRead(t, f, true, false)
	one.since, one.done = interval{f.Last, f.At}, false
}

// reopened ends a load whose files were all closed, when one of them is opened again. It does not wait for parts that
// are missing.
func (d *Detector) reopened(one *file, f *detect.Facts) {
	key, _ := keyOf(one.path)
	t := d.reads[key]
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
	key, _ := keyOf(one.path)
	if t := d.reads[key]; t != nil && slices.Contains(t.files, one) {
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
		one.reports.total, one.reports.most, one.reports.shown = 0, 0, false
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
		if one.closed.end <= f.Last || one.closed.start != one.closed.end { // no event said when
			one.closed = interval{last, f.At}
		}
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
