package rhythm

import (
	"math"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/detect"
)

// quantities is the number of counters of a job.
const quantities = int(detect.GPUBusy) + 1

// look is what is known at a look: the facts, and the processes that have ended since the look before.
type look struct {
	*detect.Facts
	before []detect.Process // of the look before
}

// find returns a process that lives, or lived at the look before.
func (l *look) find(t task) *detect.Process {
	for _, list := range [][]detect.Process{l.Processes, l.before} {
		for i := range list {
			if p := &list[i]; p.PID == t.pid && p.Started == t.started {
				return p
			}
		}
	}
	return nil
}

// worked returns when a job last worked as in an epoch: when its GPUs were busy last, or else when it worked. What
// follows is the end of the program.
func (l *look) worked(from, to time.Duration) time.Duration {
	for _, m := range []struct {
		of            detect.Quantity
		notable, rest float64 // what a program does at its end, at most
	}{{detect.GPUBusy, 0.5, 0.005}, {detect.CPUTime, 0.5, 0.005}} {
		begin, ok := l.Past.Level(m.of, from)
		all, known := l.Past.Level(m.of, to)
		if !ok || !known || all-begin < m.notable {
			continue
		}
		low, high := from, to
		for high-low > 20*time.Millisecond {
			middle := low + (high-low)/2
			if v, ok := l.Past.Level(m.of, middle); ok && v < all-m.rest {
				low = middle
			} else {
				high = middle
			}
		}
		return high
	}
	return to
}

// levels are the counters of a job at a moment. NaN is not known.
type levels [quantities]float64

// levelsAt reads the counters of a moment.
func levelsAt(p detect.Past, at time.Duration) (all levels) {
	for q := range all {
		all[q] = math.NaN()
		if p == nil {
			continue
		}
		if v, ok := p.Level(detect.Quantity(q), at); ok {
			all[q] = v
		}
	}
	return all
}

// known reports whether any counter is.
func (l *levels) known() bool {
	return slices.ContainsFunc(l[:], func(v float64) bool { return !math.IsNaN(v) })
}

// span is what may be one epoch, or a phase of one: the life of a generation of worker processes, or a pass over files.
type span struct {
	begin, end         time.Duration // end is 0 while it goes on
	beginOpen, endOpen time.Duration // lengths of the intervals that hold them
	count              int           // processes, or files
	from, to           levels        // at both ends
	whole              bool          // it began after the job was followed
	spread             time.Duration // from the first birth to the last
	ending             time.Duration // from the first end to the last
	base               []task        // the oldest processes at its begin, that do not belong to it
	baseCPU            float64       // core-seconds of those that were alive at its end
	basePID            int           // the oldest of those that worked or drive a GPU; 0 for none
	drives             bool          // one of those drives a GPU
	selfDrives         bool          // a process of the span drives a GPU
	path               string        // of a file of a pass
	evenness           float64       // 1 if it reads all the time, near 0 if at once
}

// task is a process with its CPU time at a moment.
type task struct {
	pid     int
	started time.Duration
	cpu     time.Duration
}

// amount returns by how much a counter grew.
func (s *span) amount(q detect.Quantity) (float64, bool) {
	grown := s.to[q] - s.from[q]
	return grown, !math.IsNaN(grown) && grown >= 0
}

// measures are the counters that say what a span worked, the best first, with the amount from which on each says
// something. What was fetched from storage is not one: the page cache makes it differ.
var measures = []struct {
	of      detect.Quantity
	notable float64 // bytes or seconds
}{{detect.ReadChars, 4 << 20}, {detect.GPUBusy, 0.5}, {detect.CPUTime, 0.5}}

// unlike returns how much the work of two spans differs: 0 for the same, as the logarithm of a ratio. The best counter
// decides that both have. Busy time that differs much refutes equal reading, as of validation on as many files.
func unlike(a, b *span) float64 {
	differ := math.Inf(1)
	for _, m := range measures {
		x, okX := a.amount(m.of)
		y, okY := b.amount(m.of)
		if !okX || !okY || x <= 0 || y <= 0 || max(x, y) < m.notable {
			continue
		}
		ratio := math.Abs(math.Log(x / y))
		switch {
		case math.IsInf(differ, 1):
			differ = ratio
		case m.of == detect.GPUBusy && ratio > alikeBusy:
			differ = math.Max(differ, ratio)
		}
	}
	return differ
}

// alikeBusy is how much the busy time of epochs with the same reading may differ.
const alikeBusy = 0.35

// parts are the pieces of a span in which its reading is looked at.
const parts = 8

// spread returns how evenly reading is spread over a span: 1 if each part of it reads as much, 1/8 if one part reads
// all, and 1 where it is not known.
func (s *span) measureEvenness(f *look) {
	s.evenness = 1
	total, ok := s.amount(detect.ReadChars)
	if !ok || total < 1<<20 {
		return
	}
	last, sum := s.from[detect.ReadChars], 0.0
	for i := 1; i <= parts; i++ {
		v, ok := f.Past.Level(detect.ReadChars, s.begin+s.duration()*time.Duration(i)/parts)
		if !ok {
			return
		}
		sum += min(1, (v-last)/total*parts)
		last = v
	}
	s.evenness = sum / parts
}

func (s *span) duration() time.Duration { return s.end - s.begin }

// close ends a span.
func (s *span) close(end, open time.Duration, f *look) {
	s.end, s.endOpen = end, open
	s.to = levelsAt(f.Past, end)
	s.measureEvenness(f)
	s.measureBase(f)
}

// measureBase finds what works besides the span.
func (s *span) measureBase(f *look) {
	s.baseCPU, s.basePID, s.drives = 0, 0, false
	for _, t := range s.base {
		p := f.find(t)
		if p == nil {
			continue
		}
		worked := (p.CPUTime - t.cpu).Seconds()
		s.baseCPU += worked
		if s.basePID == 0 && (p.Drives || worked >= workShare*s.duration().Seconds()) {
			s.basePID = p.PID
		}
		s.drives = s.drives || p.Drives
	}
}

// workShare is the share of a core from which on a process counts as one that works.
const workShare = 0.02

// maxBase bounds the processes that are looked at for whether they use what workers make.
const maxBase = 32

// others returns the oldest processes that do not belong to a span, with what they have worked.
func others(f *look, belongs func(p *detect.Process) bool) (base []task) {
	for i := range f.Processes {
		p := &f.Processes[i]
		if len(base) == maxBase {
			break
		}
		if !belongs(p) {
			base = append(base, task{p.PID, p.Started, p.CPUTime})
		}
	}
	return base
}
