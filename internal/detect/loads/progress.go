package loads

import (
	"slices"

	"github.com/stallspan/stallspan/internal/detect"
)

// progress adds what moved since the look before to the transfers that can have moved it.
func (d *Detector) progress(f *detect.Facts, grew [3]float64, memory map[int]float64) {
	if f.At <= f.Last {
		return
	}
	calls, maps := d.moving(f, grew[0])
	d.called(calls, f, grew[0])
	d.touched(maps, memory)
	for _, t := range d.reads {
		if slices.Contains(calls, t) || slices.Contains(maps, t) {
			t.sums[1] += grew[1] / float64(max(1, len(d.reads)))
		}
		t.note(f)
	}
}

// moving returns the transfers that read calls can have moved, which returned so many bytes, and those whose mappings
// can have been touched.
func (d *Detector) moving(f *detect.Facts, returned float64) (calls, maps []*transfer) {
	since := f.Last // bytes since then may be of a file that was closed meanwhile
	if d.readAt > 0 {
		since = min(since, d.readAt)
	}
	much := returned >= unmoved*(f.At-f.Last).Seconds()
	for _, t := range d.reads {
		if !d.looked {
			t.atFirst, t.followed = true, f.Last
		}
		t.walk(f)
		t.held = max(t.held, d.held(t))
		if t.covered() >= t.size()*float64(max(1, len(t.processes))) {
			continue
		}
		open, closed, mapped := false, false, false
		for _, one := range t.files {
			open = open || len(one.handles) > 0
			closed = closed || one.closed.end > since && one.closed.start <= f.At
			t.mapped = t.mapped || len(one.mapped) > 0
			mapped = mapped || len(one.mapped) > 0 || one.closed.end > f.Last
		}
		if t.movedBy() > 0 || closed || open && much {
			calls = append(calls, t)
		}
		if mapped {
			maps = append(maps, t)
		}
	}
	return calls, maps
}

// movedBy is by how many bytes the positions of a transfer moved in this look.
func (t *transfer) movedBy() (bytes float64) {
	for _, one := range t.files {
		bytes += one.moved
	}
	return bytes
}

// called divides what read calls returned among the transfers that they can have moved.
func (d *Detector) called(calls []*transfer, f *detect.Facts, returned float64) {
	sum := 0.0
	for _, t := range calls {
		sum += t.movedBy()
	}
	for _, t := range calls {
		moved, share := t.movedBy(), 1/float64(len(calls))
		if sum > 0 {
			share = moved / sum
		}
		t.sums[0] += returned * share
		t.pass += returned * share
		t.longest = max(t.longest, t.pass)
		switch {
		case !d.looked:
			t.ahead = moved
		case t.ahead > 0 && moved > 0 && f.At-t.open.end < late: // it goes on: this is no file that merely stays open
			t.sums[0] += t.ahead
			t.bytes += t.ahead
			for i := range t.points { // they were after it
				t.points[i].bytes += t.ahead
			}
			t.ahead = 0
		}
	}
}

// touched adds what was touched of mappings: by so many bytes the memory of files grew in each process.
func (d *Detector) touched(maps []*transfer, memory map[int]float64) {
	for _, t := range maps {
		if in := d.inMemory(t); in > 0 {
			t.touched.note(in)
		}
		t.touched.rise = max(t.touched.rise, t.early)
		t.sums[2] += t.early
		t.early = 0
		for pid, bytes := range memory {
			if t.processes[pid] > 0 {
				t.sums[2] += bytes / float64(sharing(maps, pid))
			}
		}
	}
}

// inMemory returns how many bytes of files the processes of a transfer have in memory; 0 if that is unknown.
func (d *Detector) inMemory(t *transfer) (bytes float64) {
	for pid := range t.processes {
		bytes += float64(d.process(pid).Memory)
	}
	return bytes
}

// held returns how many bytes the living processes of a transfer have in memory.
func (d *Detector) held(t *transfer) (bytes float64) {
	for pid := range t.processes {
		bytes += float64(d.process(pid).Resident)
	}
	return bytes
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
