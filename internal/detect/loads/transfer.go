package loads

import (
	"path"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/detect"
	"github.com/stallspan/stallspan/internal/window"
)

// transfer is the reading or writing of the files of one model.
type transfer struct {
	key       string
	files     []*file
	parts     int
	ahead     float64       // bytes that its files' positions were at in the job's first look
	first     point         // the same, and when that was
	walked    point         // bytes by which they moved since, and until when
	atFirst   bool          // it was open in the job's first look
	followed  time.Duration // from when on the job is followed
	mapped    bool          // one of its files was mapped
	early     float64       // bytes that were touched before the look that found the mapping
	open      interval      // in which the first file was opened
	began     interval      // in which the first byte moved, if it was later
	moved     bool
	sums      [3]float64    // bytes: by calls, from storage, touched in mappings
	pass      float64       // of the first, since a file was read from an earlier place again
	longest   float64       // the most that this was
	touched   refill        // the memory of files of its processes, while it is mapped
	last      time.Duration // when the newest byte moved
	closed    interval      // in which the last file was closed
	points    []point       // the first ones, for the rate
	newest    point
	processes map[int]int // looks by process
	held      float64     // bytes that its processes had in memory at most
	drives    bool        // one of the processes holds memory of a GPU
	named     bool        // the name of one of the files says what it is
	saidAt    time.Duration
	bytes     float64
	written   float64 // bytes that the job wrote while one of its files was open for writing
}

// refill follows an amount that grows, and falls as what it is of is given back.
type refill struct {
	lowest  float64 // since it fell; 0 before the first look
	highest float64 // since then
	rise    float64 // the most by which it has grown since it fell
	falls   int     // how often it fell, by a quarter of what it had grown at least
}

func (r *refill) note(now float64) {
	if r.lowest == 0 {
		r.lowest, r.highest = now, now
	}
	r.highest = max(r.highest, now)
	if grown := r.highest - r.lowest; grown >= minProgress && r.highest-now >= grown/4 {
		r.falls++
		r.lowest, r.highest = now, now
	}
	r.lowest = min(r.lowest, now)
	r.rise = max(r.rise, now-r.lowest)
}

type point struct {
	at    time.Duration
	bytes float64
}

func anyOf(all map[string]*transfer, match func(*transfer) bool) bool {
	for _, t := range all {
		if match(t) {
			return true
		}
	}
	return false
}

func (t *transfer) size() (bytes float64) {
	for _, one := range t.files {
		bytes += float64(one.size)
	}
	return bytes
}

// stored returns how many bytes were written. A file on a server may show its size only when it is closed.
func (t *transfer) stored() float64 {
	if size := t.size(); size >= minSaved {
		return size
	}
	return max(t.size(), t.written)
}

// covered is how many bytes were read, by the way that shows most: a read call shows in the first, a mapping in the
// third, and both in the second if the bytes were not in memory.
func (t *transfer) covered() float64 {
	read := max(t.sums[0], t.sums[1])
	if !t.mapped {
		read = min(read, t.distinct())
	}
	return min(max(read, t.inMaps()), t.size()*float64(max(1, len(t.processes))))
}

// inMaps is how many different bytes were touched in mappings. A program may map the first part of a file again and
// again: once memory was given back more often than each file was left by each process, no more counts than the most
// that was touched in between, of each file.
func (t *transfer) inMaps() float64 {
	most := len(t.files) * max(1, len(t.processes))
	if t.touched.falls <= most {
		return t.sums[2]
	}
	return min(t.sums[2], t.touched.rise*float64(len(t.files)))
}

// distinct is how many different bytes read calls can have returned. A program may read the first part of a file again
// and again. Looks then see its position anywhere in this part: twice the highest one is not less than the part. Where
// positions do not move, it is no more than was read between two opens.
func (t *transfer) distinct() (bytes float64) {
	for _, one := range t.files {
		size := float64(one.size)
		switch {
		case one.passes < repeated:
			bytes += size * float64(max(1, len(t.processes)))
		case one.high < minProgress:
			bytes += min(size, t.longest)
		default:
			bytes += min(size, 2*float64(one.high))
		}
	}
	return bytes
}

// process returns the one that was seen most.
func (t *transfer) process() (pid int) {
	most := 0
	for p, n := range t.processes {
		if n > most || n == most && p < pid {
			pid, most = p, n
		}
	}
	return pid
}

func (t *transfer) active() bool {
	return slices.ContainsFunc(t.files, (*file).active)
}

// lastClosed returns in which interval the last of its files was closed; 0 if none was.
func (t *transfer) lastClosed() (last interval) {
	for _, one := range t.files {
		if one.closed.end > last.end {
			last = one.closed
		}
	}
	return last
}

// path returns the file, or the folder of several.
func (t *transfer) path() string {
	if len(t.files) == 1 {
		return t.files[0].path
	}
	return path.Dir(t.files[0].path)
}

// found returns a window of the transfer.
func (t *transfer) found(kind window.Kind, job string) detect.Found {
	return detect.Found{
		Kind: kind, Job: job, PID: t.process(), Path: clean(t.path()), Bytes: uint64(t.covered()),
	}
}

// note notes when bytes moved.
func (t *transfer) note(f *detect.Facts) {
	now := t.covered()
	grown := now - t.bytes
	at := f.At
	if t.sums[2] < now { // the bytes are of the newest reading of counters, and not of this look
		if read, ok := f.Past.Reading(detect.ReadChars); ok {
			at = min(at, max(read, t.newest.at))
		}
	}
	if grown >= minProgress && t.moved && f.At-t.last >= late && t.bytes < header*t.size() {
		t.moved, t.points = false, nil // that was a look at the header
		t.open, t.atFirst = interval{f.Last, f.At}, false
	}
	t.bytes = now
	step := f.At - f.Last
	if mean := t.rate(f.Last); grown < minProgress || mean > 0 && grown < 0.02*mean*step.Seconds() {
		if len(t.points) > 0 && len(t.points) < maxPoints {
			t.points = append(t.points, point{at, now})
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
		t.points = append(t.points, point{at, now})
	}
	t.newest = point{at, now}
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
// rate after it. A file that is only mapped, and touched long after, is loaded from then on.
func (t *transfer) begin(hint func(within interval) (time.Duration, bool)) (at, open time.Duration) {
	within := t.open
	late := lateCall
	if t.mapped {
		late = lateTouch
	}
	if t.moved && t.began.start-t.open.end >= late {
		within = t.began
	}
	if within.start >= within.end {
		return within.end, 0
	}
	at = within.start + (within.end-within.start)/2
	if t.atFirst && within == t.open { // it may have been open for as long as the process runs
		at = max(within.start, min(t.followed, within.end))
	}
	if began, ok := t.walkedFrom(); ok {
		return min(max(within.start, began), within.end), within.end - within.start
	}
	rate := t.firstRate()
	found, ok := hint(within)
	if rate > 0 && t.points[0].at <= within.end+lateCall {
		before := time.Duration(t.points[0].bytes / rate * float64(time.Second))
		if began := t.points[0].at - before; began < within.end+atOnce {
			at = min(max(within.start, began), within.end)
			open = within.end - within.start
			// What was touched until it was first seen may have taken twice as long as what came then, or no time. Of read
			// calls that is not seen, but the counters of the job may say the same.
			if t.mapped {
				open = min(open, max(2*before, lookGap))
			} else if off := (found - at).Abs(); ok && off < atOnce {
				open = min(open, 2*off+2*lookGap)
			}
			return at, open
		}
	}
	if ok && !t.atFirst {
		return found, min(counterGap, within.end-within.start)
	}
	return at, within.end - within.start
}

const (
	lookGap    = 100 * time.Millisecond // between two looks at a job that reads a model
	counterGap = time.Second            // between two readings of the counters of a job without a window, at most
)

// walk notes by how much the positions moved of a transfer that began before the job was followed.
func (t *transfer) walk(f *detect.Facts) {
	moved := t.movedBy()
	switch {
	case !t.atFirst || moved == 0:
	case t.first.at == 0:
		t.first = point{f.At, moved}
	default:
		t.walked = point{f.At, t.walked.bytes + moved}
	}
}

// walkedFrom returns when the positions of such a transfer were at the start, if they moved as fast before.
func (t *transfer) walkedFrom() (time.Duration, bool) {
	took := t.walked.at - t.first.at
	if t.ahead != 0 || t.first.at > t.open.end || t.walked.bytes < minProgress || took <= 0 { // it did not go on at once
		return 0, false
	}
	return t.first.at - time.Duration(t.first.bytes/t.walked.bytes*float64(took)), true
}

// hint returns a function that finds in the history when a quantity began to grow.
func hint(past detect.Past, q detect.Quantity) func(interval) (time.Duration, bool) {
	return func(within interval) (time.Duration, bool) {
		return grewFrom(past, q, within, 50*time.Millisecond, minProgress, 0.02)
	}
}

// grewFrom returns when a quantity that grew by at least so much had grown by a share of that, to a step.
func grewFrom(past detect.Past, q detect.Quantity, within interval, step time.Duration,
	least, share float64) (time.Duration, bool) {
	first, ok1 := past.Level(q, within.start)
	last, ok2 := past.Level(q, within.end)
	if !ok1 || !ok2 || last-first < least {
		return 0, false
	}
	for at := within.start; at < within.end; at += step {
		if level, ok := past.Level(q, at); ok && level-first > share*(last-first) {
			return max(within.start, at-step), true
		}
	}
	return 0, false
}
