package loads

import (
	"path"
	"slices"
	"strings"
	"time"

	"github.com/stallspan/stallspan/internal/detect"
	"github.com/stallspan/stallspan/internal/source/modelfile"
	"github.com/stallspan/stallspan/internal/window"
)

// progress adds what moved since the look before to the transfers that can have moved it.
func (d *Detector) progress(f *detect.Facts, grew [3]float64, memory map[int]float64) {
	step := (f.At - f.Last).Seconds()
	if step <= 0 {
		return
	}
	var calls, maps []*transfer
	moved := map[*transfer]float64{}
	for _, t := range d.reads {
		if t.covered() >= t.size()*float64(max(1, len(t.processes))) {
			continue
		}
		open, closed, mapped := false, false, false
		for _, one := range t.files {
			open = open || len(one.handles) > 0
			closed = closed || one.closed.end > f.Last && one.closed.start <= f.At
			mapped = mapped || len(one.mapped) > 0 || one.closed.end > f.Last
			moved[t] += one.moved
		}
		if moved[t] > 0 || closed || open && grew[0] >= unmoved*step {
			calls = append(calls, t)
		}
		if mapped {
			maps = append(maps, t)
		}
	}
	sum := 0.0
	for _, t := range calls {
		sum += moved[t]
	}
	for _, t := range calls {
		share := 1 / float64(len(calls))
		if sum > 0 {
			share = moved[t] / sum
		}
		t.sums[0] += grew[0] * share
		switch {
		case !d.looked:
			t.ahead = moved[t]
		case t.ahead > 0 && moved[t] > 0 && f.At-t.open.end < late: // it goes on: this is no file that merely stays open
			t.sums[0] += t.ahead
			t.bytes += t.ahead
			for i := range t.points { // they were after it
				t.points[i].bytes += t.ahead
			}
			t.ahead = 0
		}
	}
	for _, t := range maps {
		for pid, bytes := range memory {
			if t.processes[pid] > 0 {
				t.sums[2] += bytes / float64(sharing(maps, pid))
			}
		}
	}
	for _, t := range d.reads {
		if slices.Contains(calls, t) || slices.Contains(maps, t) {
			t.sums[1] += grew[1] / float64(max(1, len(d.reads)))
		}
		t.note(f)
	}
}

// sharing counts the transfers of a process.
func sharing(all []*transfer, pid int) (n int) {
	for _, t := range all {
		if t.processes[pid] > 0 {
			n++
		}
	}
	return max(1, n)
}

// note notes when bytes moved.
func (t *transfer) note(f *detect.Facts) {
	now := t.covered()
	grown := now - t.bytes
	if grown >= minProgress && t.moved && f.At-t.last >= late && t.bytes < header*t.size() {
		t.moved, t.points = false, nil // that was a look at the header
	}
	t.bytes = now
	step := f.At - f.Last
	if mean := t.rate(f.Last); grown < minProgress || mean > 0 && grown < 0.02*mean*step.Seconds() {
		if len(t.points) > 0 && len(t.points) < maxPoints {
			t.points = append(t.points, point{f.At, now})
		}
		return
	}
	if !t.moved {
		t.moved = true
		t.began = interval{f.Last, f.At}
	}
	part := 1.0
	if mean := t.rate(f.Last); mean > 0 {
		part = min(1, grown/(mean*step.Seconds()))
	}
	t.last = f.Last + time.Duration(part*float64(step))
	if len(t.points) < maxPoints {
		t.points = append(t.points, point{f.At, now})
	}
	t.newest = point{f.At, now}
}

// maxPoints is how many points give the rate with which a transfer began.
const maxPoints = 8

// rate returns the mean rate of a transfer until now, in bytes per second; 0 if unknown.
func (t *transfer) rate(until time.Duration) float64 {
	if len(t.points) == 0 || until <= t.points[0].at {
		return 0
	}
	return (t.newest.bytes - t.points[0].bytes) / (until - t.points[0].at).Seconds()
}

// firstRate returns the rate after the first progress was seen; 0 if unknown.
func (t *transfer) firstRate() float64 {
	if len(t.points) < 2 {
		return 0
	}
	first := t.points[0]
	for _, p := range t.points[1:] {
		if p.at-first.at >= 300*time.Millisecond || p == t.points[len(t.points)-1] {
			if grown := p.bytes - first.bytes; grown > 0 && p.at > first.at {
				return grown / (p.at - first.at).Seconds()
			}
		}
	}
	return 0
}

// begin returns when a transfer began, and how much that leaves open. What was seen at first has taken as long as the
// rate after it. A file that is touched long after it was opened begins then.
func (t *transfer) begin(hint func(within interval) (time.Duration, bool)) (at, open time.Duration) {
	within := t.open
	if t.moved && t.began.start-t.open.end >= late {
		within = t.began
	}
	at = within.start + (within.end-within.start)/2
	if within.start >= within.end {
		return within.end, 0
	}
	rate := t.firstRate()
	switch found, ok := hint(within); {
	case rate > 0 && t.points[0].at <= within.end+late:
		before := time.Duration(t.points[0].bytes / rate * float64(time.Second))
		at = min(max(within.start, t.points[0].at-before), within.end)
	case ok:
		at = found
	}
	return at, within.end - within.start
}

// hint returns a function that finds in the history when a quantity began to grow.
func hint(past detect.Past, q detect.Quantity) func(interval) (time.Duration, bool) {
	return func(within interval) (time.Duration, bool) {
		first, ok1 := past.Level(q, within.start)
		last, ok2 := past.Level(q, within.end)
		if !ok1 || !ok2 || last-first < minProgress {
			return 0, false
		}
		for at := within.start; at < within.end; at += 50 * time.Millisecond {
			if level, ok := past.Level(q, at); ok && level-first > 0.02*(last-first) {
				return max(within.start, at-50*time.Millisecond), true
			}
		}
		return 0, false
	}
}

// finishReads ends the reading of models that is over.
func (d *Detector) finishReads(f *detect.Facts, all bool) {
	for _, t := range sorted(d.reads) {
		if all || d.isRead(t, f) {
			d.endRead(t, f, false, all)
		}
	}
}

func sorted(all map[string]*transfer) []*transfer {
	list := make([]*transfer, 0, len(all))
	for _, t := range all {
		list = append(list, t)
	}
	slices.SortFunc(list, func(a, b *transfer) int { return strings.Compare(a.key, b.key) })
	return list
}

// isRead reports whether the reading of a model is over.
func (d *Detector) isRead(t *transfer, f *detect.Facts) bool {
	share := t.covered() / max(1, t.size())
	wait := closedFor
	if t.parts > len(t.files) {
		wait = closedFew
	}
	if !t.active() {
		ended := time.Duration(0)
		for _, one := range t.files {
			ended = max(ended, one.closed.end)
		}
		return f.At-ended >= wait
	}
	idle := f.At - max(t.last, t.open.end)
	if t.parts <= len(t.files) {
		wait = pause
	}
	if share >= whole {
		return idle >= wait
	}
	return idle >= abandoned && share >= minCovered
}

// endRead ends the reading of a model. What follows may belong to the load, if it is one.
func (d *Detector) endRead(t *transfer, f *detect.Facts, again, ending bool) {
	delete(d.reads, t.key)
	end, open := t.last, time.Duration(0)
	var closed interval
	for _, one := range t.files {
		one.done = true
		if one.closed.end > closed.end {
			closed = one.closed
		}
	}
	switch {
	case again:
		open = f.At - f.Last
		end = max(end, f.Last)
	case !t.active() && closed.end > 0:
		at := closed.start + (closed.end-closed.start)/2
		if at < end || at-end < late {
			end, open = max(at, min(end, closed.end)), closed.end-closed.start
		}
	}
	begin, openBegin := t.begin(hint(f.Past, detect.ReadChars))
	share := t.covered() / max(1, t.size())
	certain := t.confidence(share)
	if share < minCovered && t.covered() < 1<<30 || certain < minConfidence || end <= begin || !t.moved {
		return
	}
	found := t.found(window.ModelLoad, d.job)
	found.Model = clean(modelOf(t.files[0].path))
	found.Start, found.StartOpen, found.End, found.EndOpen = begin, openBegin, end, open
	found.Confidence = certain
	found.Unfinished = ending && share < whole
	if loaded := t.downloaded(begin); loaded.end > loaded.start {
		found.Start = loaded.start
		found.Phases = append(found.Phases, detect.Phase{
			Name: Download, Start: loaded.start, End: loaded.end, Bytes: uint64(t.size()),
		})
	}
	found.Phases = append(found.Phases, detect.Phase{Name: Read, Start: begin, End: end, Bytes: found.Bytes})
	d.dropSaved(t)
	p := &pending{found: found, readEnd: end, until: f.At + serving, listens: d.listens}
	if again {
		p.until = f.At
	}
	d.pending = append(d.pending, p)
}

// downloaded returns when this job wrote the files, if that was shortly before a moment.
func (t *transfer) downloaded(begin time.Duration) (all interval) {
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
	return all
}

// dropSaved forgets the writing of files that are read now: it was a download.
func (d *Detector) dropSaved(t *transfer) {
	d.saved = slices.DeleteFunc(d.saved, func(w *transfer) bool {
		return slices.ContainsFunc(w.files, func(one *file) bool { return slices.Contains(t.files, one) })
	})
}

// minConfidence is the confidence from which on a window is emitted.
const minConfidence = 0.7

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

// finishWrites ends checkpoints that are over.
func (d *Detector) finishWrites(f *detect.Facts, all bool) {
	for _, t := range sorted(d.writes) {
		open, ended := false, interval{}
		for _, one := range t.files {
			open = open || len(one.writers) > 0
			if one.closed.end > ended.end {
				ended = one.closed
			}
		}
		if open {
			if now := t.size(); now != t.bytes {
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
		t.closed = ended
		t.bytes = t.size()
		t.saidAt = f.At
		delete(d.writes, t.key)
		d.saved = append(d.saved, t)
	}
	d.saved = slices.DeleteFunc(d.saved, func(t *transfer) bool {
		if f.At-t.saidAt < fetched && !all {
			return false
		}
		d.checkpoint(t, f)
		return true
	})
}

// checkpoint reports what was written.
func (d *Detector) checkpoint(t *transfer, f *detect.Facts) {
	reading := func(one *file) bool {
		return anyOf(d.reads, func(r *transfer) bool { return slices.Contains(r.files, one) })
	}
	if t.bytes < minSaved || slices.ContainsFunc(t.files, reading) {
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

// resolve reports the loads that nothing follows any more.
func (d *Detector) resolve(f *detect.Facts, all bool) {
	d.pending = slices.DeleteFunc(d.pending, func(p *pending) bool {
		if !d.extend(p, f) && !all && f.At < p.until {
			return false
		}
		d.out = append(d.out, p.found)
		return true
	})
}

// extend adds to a load what followed its last byte. It reports whether the load is over for sure.
func (d *Detector) extend(p *pending, f *detect.Facts) (over bool) {
	if f.HasGPU && d.gpu.grew > p.found.Start && d.gpu.since <= p.readEnd+serving && d.gpu.grew > p.device.end {
		p.device = interval{max(d.gpu.since, p.found.Start), d.gpu.grew}
		p.found.End = max(p.found.End, d.gpu.grew)
		p.until = max(p.until, f.At+flat)
	}
	if f.HasGPU && p.listens == 0 {
		p.until = max(p.until, min(p.readEnd+warmUp, f.At+serving))
	}
	compile := d.compile.end > p.readEnd && d.compile.start >= p.found.Start && d.compile.start <= p.readEnd+warmUp
	if compile && f.At-d.compile.end < quiet && p.listens <= 0 {
		p.until = max(p.until, min(p.readEnd+compiling, f.At+quiet))
	}
	listen := p.listens >= 0 && f.Listening > p.listens
	if !listen {
		if f.Listening >= 0 && p.listens < 0 {
			p.listens = f.Listening
		}
		if f.At >= p.until {
			p.phases(0, interval{}, f)
		}
		return false
	}
	end := f.Last + (f.At-f.Last)/2
	p.found.End, p.found.EndOpen = max(p.found.End, end), f.At-f.Last
	compiled := interval{}
	if compile {
		compiled = d.compile
	}
	p.phases(end, compiled, f)
	return true
}

// phases adds the phases after the reading; listens is when the job began to listen, 0 if it did not.
func (p *pending) phases(listens time.Duration, compiled interval, f *detect.Facts) {
	after := p.readEnd
	if p.device.end > p.device.start {
		p.found.Phases = append(p.found.Phases, detect.Phase{
			Name: ToDevice, Start: p.device.start, End: min(p.device.end, p.found.End),
		})
		after = max(after, p.device.end)
	}
	if compiled.end > compiled.start {
		p.found.Phases = append(p.found.Phases, detect.Phase{
			Name: Compile, Start: compiled.start, End: min(compiled.end, p.found.End),
		})
		after = max(after, compiled.end)
	}
	if listens <= after || !f.HasGPU {
		return
	}
	first, ok1 := f.Past.Level(detect.GPUBusy, after)
	last, ok2 := f.Past.Level(detect.GPUBusy, listens)
	if ok1 && ok2 && last-first > 0.01 {
		if at, ok := hintFrom(f.Past, after, listens, first, last); ok {
			p.found.Phases = append(p.found.Phases, detect.Phase{Name: WarmUp, Start: at, End: listens})
		}
	}
}

// hintFrom returns when the GPU began to work.
func hintFrom(past detect.Past, from, to time.Duration, first, last float64) (time.Duration, bool) {
	step := max(50*time.Millisecond, (to-from)/1000)
	for at := from; at < to; at += step {
		if level, ok := past.Level(detect.GPUBusy, at); ok && level-first > 0.01*(last-first) {
			return max(from, at-step), true
		}
	}
	return 0, false
}
