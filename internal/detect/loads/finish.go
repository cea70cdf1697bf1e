package loads

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stallspan/stallspan/internal/detect"
	"github.com/stallspan/stallspan/internal/source/modelfile"
	"github.com/stallspan/stallspan/internal/window"
)

// finishReads ends the reading of models that is over.
func (d *Detector) finishReads(f *detect.Facts, all bool) {
	for _, t := range sorted(d.reads) {
		if all || d.isRead(t, f) {
			d.endRead(t, f, false, all)
		}
	}
}

func sorted(all map[string]*transfer) []*transfer {
	return slices.SortedFunc(maps.Values(all), func(a, b *transfer) int { return strings.Compare(a.key, b.key) })
}

// isRead reports whether the reading of a model is over.
func (d *Detector) isRead(t *transfer, f *detect.Facts) bool {
	share := t.share()
	wait := closedFor
	if t.parts > len(t.files) {
		wait = closedFew
	}
	if !t.active() {
		return f.At-t.lastClosed().end >= wait
	}
	idle := f.At - max(t.last, t.open.end)
	if t.parts <= len(t.files) {
		wait = pause
	}
	if share >= whole {
		return idle >= wait
	}
	return idle >= abandoned && (share >= minCovered || t.isPart(share))
}

// isPart reports whether less than half of a model may be what a rank needs: with tensor parallelism, each has a part
// of each tensor. What it read has to come to its GPU: see pending.part.
func (t *transfer) isPart(share float64) bool {
	return t.drives && share >= header && t.covered() >= minBlob && len(t.files) >= t.parts
}

// endRead ends the reading of a model. What follows may belong to the load, if it is one.
func (d *Detector) endRead(t *transfer, f *detect.Facts, again, ending bool) {
	delete(d.reads, t.key)
	for _, one := range t.files {
		one.done = true
	}
	end, openEnd := t.end(f, again)
	begin, openBegin := t.begin(hint(f.Past, detect.ReadChars))
	if end <= begin || !d.isLoad(t, f, begin, end) {
		return
	}
	share := t.share()
	found := t.found(window.ModelLoad, d.job)
	found.Model = clean(modelOf(t.files[0].path))
	found.Start, found.StartOpen, found.End, found.EndOpen = begin, openBegin, end, openEnd
	found.Confidence = t.confidence(share)
	found.Unfinished = ending && share < whole
	if loaded := d.downloaded(t, begin); loaded.end > loaded.start {
		found.Start = loaded.start
		found.Phases = append(found.Phases, detect.Phase{
			Name: Download, Start: loaded.start, End: loaded.end, Bytes: uint64(t.size()),
		})
	}
	found.Phases = append(found.Phases, detect.Phase{Name: Read, Start: begin, End: end, Bytes: found.Bytes})
	d.dropSaved(t)
	p := &pending{
		found: found, readEnd: end, until: f.At + serving, listens: d.listens, unnamed: !t.named, part: t.lacks(share),
	}
	if again {
		p.until = f.At
	}
	d.pending = append(d.pending, p)
}

// end returns when the reading of a model ended, and how much that leaves open. Its file may be read again at once.
func (t *transfer) end(f *detect.Facts, again bool) (at, open time.Duration) {
	closed := t.lastClosed()
	switch {
	case again:
		return max(t.last, f.Last), f.At - f.Last
	case t.sums[2] > max(t.sums[0], t.sums[1]): // touched: that shows in each look, and an end of a mapping later
	case !t.active() && closed.end > 0:
		at := closed.start + (closed.end-closed.start)/2
		if at < t.last || at-t.last < late {
			return max(at, min(t.last, closed.end)), closed.end - closed.start
		}
	}
	return t.last, 0
}

// isLoad reports whether the reading of files is the load of a model.
func (d *Detector) isLoad(t *transfer, f *detect.Facts, begin, end time.Duration) bool {
	share := t.share()
	certain := t.confidence(share)
	nowhere := !t.drives && (d.driven || !f.HasGPU) // what it reads comes to no GPU by itself
	switch {
	case !t.moved:
		return false
	case certain < sure && d.drivers > 0 && !t.drives:
		return false // workers of a training read files like it for the process that has the model
	case nowhere && t.held > 0 && t.held < minHeld*t.covered():
		return false // its bytes stayed nowhere: this is a checksum or a copy
	case t.lacks(share) && !t.isPart(share):
		return false
	case t.named:
		return certain >= minConfidence
	}
	return !isCopied(f.Past, begin, end, t.covered())
}

// share is which share of its files a transfer covers.
func (t *transfer) share() float64 { return t.covered() / max(1, t.size()) }

// lacks reports whether too little was read for a whole model.
func (t *transfer) lacks(share float64) bool { return share < minCovered && t.covered() < 1<<30 }

// isCopied reports whether a job wrote about as much as it read: it copied a file.
func isCopied(past detect.Past, from, to time.Duration, read float64) bool {
	before, ok1 := past.Level(detect.WriteBytes, from)
	after, ok2 := past.Level(detect.WriteBytes, to)
	return ok1 && ok2 && after-before >= 0.5*read
}

// downloaded returns when this job wrote the files, if the last one was complete shortly before a moment, when they
// were read. What is one of several that the job stored is a checkpoint that it reads again.
func (d *Detector) downloaded(t *transfer, begin time.Duration) (all interval) {
	if d.isOneOfSeveral(t) {
		return all
	}
	for _, one := range t.files {
		w := one.written
		if w.end == 0 || begin-w.end > downloads || w.end > begin+time.Second {
			continue
		}
		if all.end == 0 {
			all = w
		}
		all = interval{min(all.start, w.start), max(all.end, w.end)}
	}
	if begin-all.end > fetched {
		return interval{}
	}
	return all
}

const (
	minConfidence = 0.7 // from which on a window is emitted
	sure          = 0.9 // from which on nothing else has to speak for it
)

// confidence is how likely it is that a transfer is the load of a model.
func (t *transfer) confidence(share float64) float64 {
	certain, largest := 0.0, int64(0)
	for _, one := range t.files {
		if one.size > largest {
			certain, largest = likely(one.path), one.size
		}
	}
	if t.parts == 0 && len(t.files) > manyFiles && modelfile.Repository(t.files[0].path) == "" {
		certain = min(certain, 0.3)
	}
	switch {
	case share < 0.75:
		certain *= 0.8
	case share < whole:
		certain *= 0.9
	}
	return certain
}
