package rhythm

import (
	"path"
	"time"

	"github.com/stallspan/stallspan/internal/detect"
)

const (
	// A pass whose files hardly show is as long as the last one all of whose files showed, in bytes that calls return: so
	// many in a row, if files do not show again.
	maxCounted = 3
	minCounted = 16 << 20 // bytes
	minFiles   = 4
	early      = 0.1 // share of a pass, before its end, in which a file of the next one may show
)

// refine sets the ends of a pass by what it read, and reports whether it has read all of its files once. The first pass
// begins with the first file in the folder of those that were opened again. If as much was read as its files have after
// the last of them showed, and before one was opened again, the pass ended then.
func (p *passes) refine(f *look, o *opened) bool {
	pass := p.pass
	if p.held == nil {
		for i := range p.early {
			if e := &p.early[i]; path.Dir(e.path) == path.Dir(o.path) {
				pass.begin, pass.beginOpen, pass.from, pass.base = e.at, e.open, e.from, e.base
				break
			}
		}
	}
	size, last := 0.0, time.Duration(0)
	for _, u := range p.cur {
		if u.at >= pass.begin && u.first < p.turn { // a worker may begin the next pass with the file that it read last
			size, last = size+float64(u.size), max(last, u.first)
		}
	}
	read, ok := f.level(detect.ReadChars, p.turn)
	if read -= pass.from[detect.ReadChars]; !ok || size < minCounted || read < (1-early)*size {
		return false
	}
	at, ok := f.reached(detect.ReadChars, pass.from[detect.ReadChars]+size, pass.begin, p.turn)
	switch {
	case !ok: // a file was opened again at once
	case at <= last:
		return false
	default:
		p.turn, p.open = at, f.At-f.Last
	}
	p.pass = pass
	return true
}

// reached returns when a counter had reached so many bytes.
func (f *look) reached(q detect.Quantity, bytes float64, from, until time.Duration) (time.Duration, bool) {
	if all, ok := f.level(q, until); !ok || all < bytes {
		return 0, false
	}
	for until-from > 20*time.Millisecond {
		middle := from + (until-from)/2
		if v, ok := f.level(q, middle); ok && v < bytes {
			from = middle
		} else {
			until = middle
		}
	}
	return until, true
}

// count ends a pass that has read as much as the last one whose files showed. Nothing that shows may be against it.
func (p *passes) count(f *look) (ended span, ok bool) {
	due := p.pass.from[detect.ReadChars] + p.bytes
	now, known := f.level(detect.ReadChars, f.At)
	if p.bytes == 0 || !known || now < due+early*p.bytes {
		return span{}, false
	}
	at, ok := f.reached(detect.ReadChars, due, p.pass.begin, f.At)
	late := at - time.Duration(early*float64(at-p.pass.begin))
	if !ok || p.wrap != nil && p.turn < late || p.counted == maxCounted {
		p.bytes = 0
		return span{}, false
	}
	s := p.pass
	s.count, s.counted = p.files, true
	s.close(at, f.At-f.Last, f)
	p.counted++
	showed := 0
	for k, u := range p.cur {
		if of, common := p.full[k]; common && !u.differs(of.modified) && u.at < at {
			showed++
		}
	}
	if 2*showed > len(p.full) {
		p.counted = 0
	}
	p.next(f, at, f.At-f.Last, s.pid, s.path)
	return s, true
}

// readUntil returns when the last pass of a job ended, which worked until a moment: soon after its last read.
func (f *look) readUntil(s *span, worked time.Duration) time.Duration {
	q := detect.ReadChars
	begin, all := s.from[q], 0.0
	for _, of := range [...]detect.Quantity{detect.ReadChars, touched} {
		if v, ok := f.level(of, worked); ok && v-s.from[of] >= minRead {
			q, begin, all = of, s.from[of], v-s.from[of]
			break
		}
	}
	if all == 0 {
		return worked
	}
	low, high := s.begin, worked
	for high-low > 20*time.Millisecond {
		middle := low + (high-low)/2
		if v, ok := f.level(q, middle); ok && v-begin < 0.98*all {
			low = middle
		} else {
			high = middle
		}
	}
	return min(worked, high+(high-s.begin)/parts)
}
