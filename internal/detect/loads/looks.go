package loads

import (
	"path"
	"strings"

	"github.com/stallspan/stallspan/internal/detect"
	"github.com/stallspan/stallspan/internal/source/modelfile"
)

// isUnnamed reports whether a file of a look has no extension, and may be a model by its size and by who reads it.
func (d *Detector) isUnnamed(x *detect.File) bool {
	return x.Size >= minBlob && !x.Write && d.process(x.PID).Drives && path.Ext(x.Path) == ""
}

// learn takes over which files are open or mapped.
func (d *Detector) learn(f *detect.Facts) {
	for _, one := range d.files {
		one.moved = 0
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
		d.renamed(one)
		d.saw(one, x, f)
	}
	for _, one := range d.files {
		d.endHandles(one, f)
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

// saw takes over a file that a process has open or mapped in a look.
func (d *Detector) saw(one *file, x *detect.File, f *detect.Facts) {
	one.seen = f.At
	one.size = max(one.size, x.Size)
	switch {
	case x.Write:
		d.sawWriter(one, x, f)
	case modelfile.IsPartial(one.path):
	case x.FD >= 0:
		d.sawReader(one, x, f)
	default:
		d.sawMapping(one, x, f)
	}
	if x.FD >= 0 && x.Mapped > 0 && !x.Write {
		one.mapped[x.PID] = f.At
	}
}

// sawWriter takes over a file that is open for writing.
func (d *Detector) sawWriter(one *file, x *detect.File, f *detect.Facts) {
	if len(one.writers) == 0 {
		d.openedBy(x.PID, one, f)
		one.written.start = one.since.start
	}
	one.writers[handle{x.PID, x.FD}] = position{x.Size, f.At}
	one.size = x.Size
	one.written.end = f.At
	if !modelfile.IsPartial(one.path) || !strings.HasSuffix(one.path, ".incomplete") {
		d.nextWrite(one, f)
		d.join(d.writes, "w:"+path.Dir(one.path), one, x.PID)
	}
}

// sawReader takes over a file that is open for reading, and how far its position moved.
func (d *Detector) sawReader(one *file, x *detect.File, f *detect.Facts) {
	h := handle{x.PID, x.FD}
	before, known := one.handles[h]
	if !one.active() {
		d.reopened(one, f)
		d.openedBy(x.PID, one, f)
		one.done = false
	}
	if known && x.Offset < before.at {
		d.pass(one)
	}
	again := known && float64(before.at) > rewound*float64(one.size) && float64(x.Offset) < 0.1*float64(one.size)
	if again {
		d.again(one, f)
	}
	moved := max(x.Offset-before.at, before.at-x.Offset)
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
}

// sawMapping takes over a file that is mapped and not open.
func (d *Detector) sawMapping(one *file, x *detect.File, f *detect.Facts) {
	last := d.process(x.PID).MapsLast
	if !one.active() {
		d.openedBy(x.PID, one, f)
		if last > 0 && one.since.end == f.At { // mappings are listed more rarely than open files
			one.since.start = min(one.since.start, last)
		}
		one.done = false
	}
	_, known := one.mapped[x.PID]
	only := !anyOf(d.reads, func(t *transfer) bool { return t.mapped && t.processes[x.PID] > 0 })
	one.mapped[x.PID] = f.At
	d.joinRead(one, x.PID)
	if t := d.readOf(one); t != nil && !known && only && !one.done { // it may have been touched since it was mapped
		t.early += d.touchedSince(x.PID, max(one.since.start, last))
	}
}

// openedBy notes when a process opened or mapped a file that no look before had seen so.
func (d *Detector) openedBy(pid int, one *file, f *detect.Facts) {
	started := d.process(pid).Started
	one.since = interval{min(max(d.lastOf(pid, f), started), f.At), f.At}
	if !d.looked && started > 0 { // it may have been opened before the job was followed
		one.since.start = min(started, f.Last)
	}
}
