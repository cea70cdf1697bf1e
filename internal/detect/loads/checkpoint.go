package loads

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/stallspan/stallspan/internal/detect"
	"github.com/stallspan/stallspan/internal/source/modelfile"
	"github.com/stallspan/stallspan/internal/window"
)

// dropSaved forgets the writing of files that are read now: it was a download, unless it is one of several checkpoints.
func (d *Detector) dropSaved(t *transfer) {
	d.saved = slices.DeleteFunc(d.saved, func(w *transfer) bool {
		read := slices.ContainsFunc(w.files, func(one *file) bool { return slices.Contains(t.files, one) })
		return read && !d.isOneOfSeveral(w)
	})
}

// finishWrites ends checkpoints that are over.
func (d *Detector) finishWrites(f *detect.Facts, all bool) {
	for _, t := range sorted(d.writes) {
		open, ended := false, t.lastClosed()
		for _, one := range t.files {
			open = open || len(one.writers) > 0
		}
		if open {
			t.written += d.wroteNow
			if now := t.stored(); now != t.bytes {
				if !t.moved {
					t.moved, t.began = true, interval{f.Last, f.At}
				}
				t.bytes = now
				t.points = append(t.points[:min(len(t.points), maxPoints-1)], point{f.At, now})
			}
			t.last = f.At
		}
		if all && open {
			delete(d.writes, t.key) // it was not completed
			continue
		}
		if open || f.At-ended.end < closedFor && !all {
			continue
		}
		d.wrote(t, ended, f)
	}
	d.saved = slices.DeleteFunc(d.saved, func(t *transfer) bool {
		if f.At-t.saidAt < fetched && !all {
			return false
		}
		d.checkpoint(t, f)
		return true
	})
}

// wrote ends the writing of a checkpoint.
func (d *Detector) wrote(t *transfer, closed interval, f *detect.Facts) {
	t.closed, t.bytes, t.saidAt = closed, t.stored(), f.At
	d.note(t)
	delete(d.writes, t.key)
	d.saved = append(d.saved, t)
}

// numbers are what the names of checkpoints of the same training differ in.
var numbers = regexp.MustCompile(`[0-9]+`)

// stored is what the job has written under names that differ in numbers only.
type stored struct {
	path    string // the newest
	several bool
}

// seriesOf returns the path of what was stored, and what the paths of all checkpoints of one training have in common.
// The number of a part is in neither.
func seriesOf(t *transfer) (name, series string) {
	name = path.Dir(t.files[0].path)
	if !numbers.MatchString(path.Base(name)) {
		base, _ := stem(t.files[0].path)
		name += "/" + base
	}
	return name, numbers.ReplaceAllString(name, "0")
}

// isOneOfSeveral reports whether the job has stored others like it.
func (d *Detector) isOneOfSeveral(t *transfer) bool {
	_, series := seriesOf(t)
	return d.stored[series].several
}

// note remembers the path of what was written.
func (d *Detector) note(t *transfer) {
	name, series := seriesOf(t)
	old, known := d.stored[series]
	if !known && len(d.stored) >= maxGroups || modelfile.IsBlob(t.files[0].path) {
		return
	}
	d.stored[series] = stored{name, old.several || known && old.path != name}
}

// nextWrite ends the writing of a checkpoint if a file is the next one of the same training, in the same folder.
func (d *Detector) nextWrite(one *file, f *detect.Facts) {
	t := d.writes["w:"+path.Dir(one.path)]
	if t == nil || slices.Contains(t.files, one) {
		return
	}
	own, parts := stem(one.path)
	next := false
	for _, other := range t.files {
		if len(other.writers) > 0 {
			return
		}
		base, _ := stem(other.path)
		next = next || base != own && numbers.ReplaceAllString(base, "0") == numbers.ReplaceAllString(own, "0")
	}
	if next && parts == 0 {
		d.wrote(t, t.lastClosed(), f)
	}
}

// checkpoint reports what was written.
func (d *Detector) checkpoint(t *transfer, f *detect.Facts) {
	reading := func(one *file) bool {
		return anyOf(d.reads, func(r *transfer) bool { return slices.Contains(r.files, one) })
	}
	if t.bytes < minSaved || !d.isOneOfSeveral(t) && slices.ContainsFunc(t.files, reading) {
		return
	}
	certain := 0.0
	for _, one := range t.files {
		if modelfile.IsBlob(one.path) {
			return
		}
		certain = max(certain, likely(strings.TrimSuffix(one.path, ".tmp")))
	}
	if certain < minConfidence {
		return
	}
	found := t.found(window.Checkpoint, d.job)
	found.Bytes = uint64(t.bytes)
	found.Start, found.StartOpen = t.begin(hint(f.Past, detect.WriteBytes))
	found.End = t.closed.start + (t.closed.end-t.closed.start)/2
	found.EndOpen = t.closed.end - t.closed.start
	found.Confidence = certain
	if len(t.files) == 1 {
		found.Name = clean(path.Base(t.files[0].path))
	} else {
		found.Name = clean(path.Base(path.Dir(t.files[0].path)))
	}
	if found.End > found.Start {
		d.out = append(d.out, found)
	}
}
