package rhythm

import (
	"math"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/detect"
)

// quantities is the number of counters of a job, and touched the number of one that only looks give: bytes of mapped
// files that were touched: see point.
const (
	touched    = detect.GPUBusy + 1
	quantities = int(touched) + 1
)

// look is what is known at a look: the facts, what earlier looks saw, and the processes that have ended since the look
// before.
type look struct {
	*detect.Facts
	before []detect.Process // of the look before
	number int              // of the look
	read   time.Duration    // the newest reading at the look before
	maps   *maps
	stores *stores
	shown  *shown
}

// level returns a counter at a moment.
func (l *look) level(q detect.Quantity, at time.Duration) (float64, bool) {
	switch {
	case q == touched:
		return l.maps.level(at)
	case l.Past == nil:
		return 0, false
	case q == detect.GPUBusy:
		return l.busy(at)
	}
	return l.Past.Level(q, at)
}

// busy returns the busy time of the GPUs at a moment. It is read once a second: after the newest reading it goes on as
// in the second before.
func (l *look) busy(at time.Duration) (float64, bool) {
	newest, ok := l.Past.Reading(detect.GPUBusy)
	if !ok || at <= newest {
		return l.Past.Level(detect.GPUBusy, at)
	}
	v, ok := l.Past.Level(detect.GPUBusy, newest)
	if before, known := l.Past.Level(detect.GPUBusy, newest-time.Second); ok && known {
		v += max(0, v-before) * min(1, (at-newest).Seconds())
	}
	return v, ok
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

// looksUntil returns how many looks there were up to a moment, which is not long ago.
func (l *look) looksUntil(at time.Duration) int { return l.number - l.maps.after(at) }

// levelsAt reads the counters of a moment.
func (l *look) levelsAt(at time.Duration) (all levels) {
	for q := range all {
		all[q] = math.NaN()
		if v, ok := l.level(detect.Quantity(q), at); ok {
			all[q] = v
		}
	}
	return all
}

// levelsAtBirth reads the counters when a process was started. A job that did nothing is read once a second: what grew
// from the newest reading at the look before, which came after the start, is of the new process.
func (l *look) levelsAtBirth(at time.Duration) levels {
	all := l.levelsAt(at)
	if l.read > 0 && l.read < at && at <= l.Last {
		before := l.levelsAt(l.read)
		all[detect.ReadChars], all[detect.CPUTime] = before[detect.ReadChars], before[detect.CPUTime]
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
	stores             bool          // a process of the span stores something: it saves a checkpoint
	pass               bool          // it is a pass over files
	pid                int           // of a pass, the process that began it
	path               string        // of a file of a pass
	counted            bool          // its end is where it had read as much as the pass before
	evenness           float64       // 1 if it reads all the time, near 0 if at once
	looks              int           // the number of the look at its begin, and then how many it lasts
	files              sketch        // that showed
	stop, stopOpen     time.Duration // when something was stored after it, or after what it read; 0 if nothing was
}

// task is a process with its CPU time at a moment.
type task struct {
	pid     int
	started time.Duration
	cpu     time.Duration
	drives  bool
}

// amount returns by how much a counter grew.
func (s *span) amount(q detect.Quantity) (float64, bool) {
	grown := s.to[q] - s.from[q]
	return grown, !math.IsNaN(grown) && grown >= 0
}

// read returns how many bytes were read, by calls or from mapped files.
func (s *span) read() (sum float64) {
	for _, q := range [...]detect.Quantity{detect.ReadChars, touched} {
		if grown, ok := s.amount(q); ok {
			sum += grown
		}
	}
	return sum
}

// measures are the counters that say what a span worked, the best first, with the amount from which on each says
// something. What was fetched from storage is not one: the page cache makes it differ.
var measures = []struct {
	of      detect.Quantity
	notable float64 // bytes or seconds
}{{detect.ReadChars, 4 << 20}, {touched, 1 << 20}, {detect.GPUBusy, 0.5}, {detect.CPUTime, 0.5}}

// unlike returns how much the work of two spans differs: 0 for the same, as the logarithm of a ratio. The best counter
// decides that both have. Busy time that differs much refutes equal reading, as of validation on as many files.
func unlike(a, b *span) float64 {
	differ := math.Inf(1)
	for _, m := range measures {
		x, okX := a.amount(m.of)
		y, okY := b.amount(m.of)
		if !okX || !okY || x <= 0 || y <= 0 || max(x, y) < m.notable || m.of == detect.ReadChars && b.counted {
			continue
		}
		ratio := math.Abs(math.Log(x / y))
		if m.of == touched {
			// What is touched after the last look at a map is not known. The kernel maps more pages with one that is touched,
			// those that are in memory: the same work differs by more than in bytes that calls return.
			ratio = max(0, ratio-1/float64(max(1, min(a.looks, b.looks)))) / 2
		}
		if m.of == detect.GPUBusy && b.counted { // nothing else is measured
			ratio = max(0, ratio-busyOpen/min(x, y))
		}
		switch {
		case math.IsInf(differ, 1):
			differ = ratio
		case m.of == detect.GPUBusy && ratio-busyOpen/min(x, y) > alikeBusy:
			differ = math.Max(differ, ratio)
		}
	}
	return differ
}

const (
	// alikeBusy is how much the busy time of epochs with the same reading may differ.
	alikeBusy = 0.35
	// busyOpen is how far off the busy time between two moments may be, in s: it is read once a second.
	busyOpen = 0.6
)

// parts are the pieces of a span in which its reading is looked at.
const parts = 8

// measureEvenness sets how evenly reading is spread over a span: 1 if each part of it reads as much, 1/8 if one part
// reads all, and 1 where it is not known.
func (s *span) measureEvenness(f *look) {
	s.evenness = 1
	q := detect.ReadChars
	if read, ok := s.amount(q); !ok || read < minRead {
		q = touched
	}
	total, ok := s.amount(q)
	if !ok || total < minRead {
		return
	}
	length := s.stopped() - s.begin
	last, sum := s.from[q], 0.0
	for i := 1; i <= parts; i++ {
		v, ok := f.level(q, s.begin+length*time.Duration(i)/parts)
		if !ok {
			return
		}
		sum += min(1, (v-last)/total*parts)
		last = v
	}
	s.evenness = sum / parts
}

// minRead is how many bytes a span reads at least, if anything is to be said of how.
const minRead = 1 << 20

// stopped returns when a span ended, or when something was stored after what it read.
func (s *span) stopped() time.Duration {
	if s.stop > 0 {
		return s.stop
	}
	return s.end
}

// least returns the length below which a span is no epoch: that of a few looks, or two seconds where they are rare. Two
// seconds are not enough for a map: only looks show when its pages are touched.
func (s *span) least() time.Duration {
	few := max(shortest/4, fewLooks*s.duration()/time.Duration(max(1, s.looks)))
	read, _ := s.amount(detect.ReadChars)
	if pages, ok := s.amount(touched); ok && pages >= minRead && read < minRead {
		return few
	}
	return min(shortest, few)
}

func (s *span) duration() time.Duration { return s.end - s.begin }

// close ends a span.
func (s *span) close(end, open time.Duration, f *look) {
	s.end, s.endOpen = end, open
	s.looks = f.looksUntil(end) - s.looks
	s.to = f.levelsAt(end)
	if s.pass {
		if one, ok := f.stores.after(s); ok {
			s.stop, s.stopOpen = one.at, one.open
		}
	}
	read, _ := s.amount(detect.ReadChars)
	s.files = f.shown.sketch(s.begin, s.end, read)
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
		drives := p.Drives || t.drives // one that ends may have left its GPU already
		if s.basePID == 0 && (drives || worked >= workShare*s.duration().Seconds()) {
			s.basePID = p.PID
		}
		s.drives = s.drives || drives
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
			base = append(base, task{p.PID, p.Started, p.CPUTime, p.Drives})
		}
	}
	return base
}
