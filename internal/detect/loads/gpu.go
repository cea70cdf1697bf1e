package loads

import (
	"time"

	"github.com/stallspan/stallspan/internal/detect"
)

const (
	readEvery  = 1100 * time.Millisecond // of the memory of a GPU, at most, and until its busy time is in the history
	copyGap    = 2 * time.Second         // between two growths of a GPU's memory by the same load
	lagging    = 1500 * time.Millisecond // until all that happened shows
	maxSteps   = 128                     // ten a second while a load may be going on
	runtimes   = 1 << 30                 // bytes that the driver and libraries take besides the model
	working    = 0.3                     // share of a time in which a GPU works, once it does
	workFor    = 200 * time.Millisecond
	afterJump  = 2 * time.Second        // after all memory was taken at once, for the copy into it
	afterSteps = 400 * time.Millisecond // after the last of several growths
)

// gpuMemory follows the memory in use on the job's GPUs.
type gpuMemory struct {
	used  uint64
	known bool
	same  time.Duration // the newest reading of used, or of less
	steps []step        // oldest first
}

// step is a change of the memory in use, between the readings at last and at.
type step struct {
	last, at time.Duration
	from, to uint64
}

// look takes over the memory in use.
func (g *gpuMemory) look(f *detect.Facts) {
	at, last := f.At, max(g.same, f.At-readEvery)
	if f.GPUMemoryAt > 0 {
		at, last = f.GPUMemoryAt, max(g.same, f.GPUMemoryAt-readEvery)
	}
	if !g.known {
		g.used, g.known, g.same = f.GPUMemory, f.HasGPU, f.GPUMemoryAt
		return
	}
	if max(f.GPUMemory, g.used) <= min(f.GPUMemory, g.used)+g.used/256+(1<<20) {
		if f.GPUMemory <= g.used { // small growths add up
			g.used = f.GPUMemory
			if f.GPUMemoryAt > 0 {
				g.same = at
			}
		}
		return
	}
	if len(g.steps) >= maxSteps {
		g.merge(at)
	}
	g.steps = append(g.steps, step{min(last, at), at, g.used, f.GPUMemory})
	g.used, g.same = f.GPUMemory, at
}

// merge makes one step of those within a second, where they are older than those that a load ends with. If that is not
// enough, it drops the oldest.
func (g *gpuMemory) merge(now time.Duration) {
	kept := g.steps[:0]
	for _, s := range g.steps {
		if n := len(kept); n > 0 && s.at < now-copyGap {
			before := &kept[n-1]
			if before.to == s.from && (before.to > before.from) == (s.to > s.from) && s.at-before.last <= readEvery {
				before.at, before.to = s.at, s.to
				continue
			}
		}
		kept = append(kept, s)
	}
	g.steps = kept[max(0, len(kept)-maxSteps+1):]
}

// copies returns by which growths of a GPU's memory the weights of a load came there, up to a limit: one after another,
// not long after the last byte was read, and no more than the model has.
func (g *gpuMemory) copies(p *pending, limit time.Duration) (list []step) {
	total, last := 0.0, p.readEnd
	for _, s := range g.steps {
		switch {
		case s.at <= p.found.Start || s.last >= limit:
			continue
		case s.to < s.from:
			if s.at > p.readEnd {
				return list
			}
			list, total = nil, 0
			continue
		case s.at-last > copyGap, total > 0 && total+float64(s.to-s.from) > 1.3*float64(p.found.Bytes)+runtimes:
			return list
		}
		list = append(list, s)
		total += float64(s.to - s.from)
		last = max(last, s.at)
	}
	return list
}

// grew returns by how much the memory grew in a load, with what followed in the same second: a rank with little to copy
// takes memory for its work right after that.
func (g *gpuMemory) grew(start, readEnd time.Duration) (bytes float64) {
	for _, s := range g.steps {
		if s.to > s.from && s.at > start && s.last < readEnd+lagging {
			bytes += float64(s.to - s.from)
		}
	}
	return bytes
}

// ended returns when the last weights were on the GPU, and how much that leaves open. Memory is read once a second: it
// grew as fast in its last part as before. A GPU that did nothing and then works has all it needs.
func ended(copies []step, p *pending, past detect.Past) (at, open time.Duration) {
	n := len(copies)
	last := copies[n-1]
	until := max(last.at, p.readEnd) + afterSteps
	if n == 1 && float64(last.to-last.from) > 0.8*float64(p.found.Bytes) {
		until = max(last.at, p.readEnd) + afterJump
	}
	low := max(p.readEnd, last.last)
	if began, ok := works(past, low, until); ok {
		return began, workFor
	}
	if last.at <= p.readEnd {
		return p.readEnd, 0
	}
	at, open = low+(last.at-low)/2, last.at-low
	if n >= 2 {
		first, before, rate := copies[0], copies[n-2], 0.0
		switch {
		case n > 2:
			rate = float64(before.to-first.to) / (before.at - first.at).Seconds()
		case before.at < p.readEnd: // it copies as it reads
			rate = float64(p.found.Bytes) / (p.readEnd - p.found.Start).Seconds()
		}
		if rate > 0 {
			took := time.Duration(float64(last.to-last.from) / rate * float64(time.Second))
			at = min(max(low, before.at+took), last.at)
			open = min(open, max(2*(at-low), 2*lookGap))
		}
	}
	return at, open
}

// works returns when the GPUs of a job, which did nothing before, began to work.
func works(past detect.Past, from, to time.Duration) (time.Duration, bool) {
	const fine = 20 * time.Millisecond
	first, known := past.Level(detect.GPUBusy, from)
	if !known {
		return 0, false
	}
	for at := from; at <= to; at += fine {
		now, ok1 := past.Level(detect.GPUBusy, at)
		then, ok2 := past.Level(detect.GPUBusy, at+workFor)
		if !ok1 || !ok2 || now-first > 0.05*(at-from).Seconds()+0.02 {
			return 0, false
		}
		if then-now >= working*workFor.Seconds() {
			for ; at < to+workFor; at += fine { // the first moment that adds anything
				if next, ok := past.Level(detect.GPUBusy, at+fine); !ok || next-now > 0.002 {
					return at, true
				}
			}
			return at, true
		}
	}
	return 0, false
}
