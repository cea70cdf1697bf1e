package rhythm

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/detect"
)

const (
	// maxFiles bounds the files of a pass that are remembered. Of more, only those whose hash is a multiple of a power of
	// two are, as many as fit.
	maxFiles = 1 << 14
	// again is the time after which one more open of a file is not the same use: a loader opens a file for its header
	// and then for its data, and each worker opens it once.
	again = time.Second
	// A new pass needs this share of the files of the last one, and this many at least.
	wrapShare = 0.05
	wrapMost  = 12
	// maxFew files are few.
	maxFew = 32
)

// passes follows which data files a job opens, and finds when it begins again with those that it has read.
type passes struct {
	cur   map[detect.FileKey]use // files of this pass
	mask  uint64                 // only keys with these bits of the hash 0 are kept
	begun bool
	pass  span

	// wrap may be the begin of the next pass: files of this one that were opened again.
	wrap   map[detect.FileKey]use
	missed int // new files since then
	turn   time.Duration
	open   time.Duration // length of the interval that holds turn

	bytes   float64                // that calls returned in the last pass all of whose files showed; 0 for unknown
	files   int                    // of that pass
	full    map[detect.FileKey]use // the same
	counted int                    // passes since files showed

	newest map[int]detect.FileKey // the file that each process opened last
	lone   lone

	fds  []descriptor // by process and descriptor
	last time.Duration

	// The first pass begins with the first file that the second one has, too: what is opened before is of the start-up.
	early []earlyOpen
	held  *span // the first pass, until the second one has ended
}

// earlyOpen is one of the first opens of the first pass.
type earlyOpen struct {
	opened
	from levels
	base []task
}

const maxEarly = 64

// lone is the file that was opened last, if it was so several times: it may be the whole data set, and the files before
// it were read once.
type lone struct {
	key detect.FileKey
	modified
	last  time.Duration // when it was opened last
	pass  span          // since then
	spans []span        // between opens
}

// use is the last open of a file.
type use struct {
	at    time.Duration
	size  int64         // bytes of the file
	first time.Duration // its first open in this use of it
	modified
}

// look takes the opens since the last look, and returns the passes that ended.
func (p *passes) look(f *look, first bool) (ended []span) {
	var list []opened
	rewinds := p.scan(f, first)
	if f.Exact {
		for i := range f.Events {
			e := &f.Events[i]
			if !e.Close && !e.Write && isData(e.Path) {
				list = append(list, opened{at: e.At, pid: e.PID, key: e.Key, size: e.Size, path: e.Path})
			}
		}
		for _, o := range rewinds {
			if o.rewind || o.size < f.MinSize {
				list = append(list, o)
			}
		}
	} else {
		list = rewinds
	}
	slices.SortStableFunc(list, func(a, b opened) int { return cmp.Compare(a.at, b.at) })
	f.shown.add(list)
	keep := func(s span) {
		if p.early != nil && p.held == nil {
			p.held = &s
			return
		}
		if p.held != nil {
			ended = append(ended, *p.held)
			p.held, p.early = nil, nil
		}
		ended = append(ended, s)
	}
	for i := range list {
		if alone := p.alone(&list[i], f); alone != nil {
			if p.held != nil {
				ended = append(ended, *p.held)
			}
			p.held, p.early = nil, nil
			ended = append(ended, alone...)
			continue
		}
		if s, ok := p.note(&list[i], f); ok {
			keep(s)
		}
	}
	if s, ok := p.count(f); ok {
		keep(s)
	}
	return ended
}

// note takes one open. It returns the pass that has ended with it.
func (p *passes) note(o *opened, f *look) (ended span, ok bool) {
	if hash(o.key)&p.mask != 0 {
		return span{}, false
	}
	p.last = max(p.last, o.at)
	if !p.begun {
		p.start(o.at, o.open, f, o.pid, o.path)
		p.cur = map[detect.FileKey]use{o.key: {o.at, o.size, o.at, o.modified}}
		p.early = []earlyOpen{{*o, p.pass.from, p.pass.base}}
		return span{}, false
	}
	if p.held == nil && p.early != nil && len(p.early) < maxEarly {
		p.early = append(p.early, earlyOpen{*o, f.levelsAt(o.at), others(f, startedAfter(o.at))})
	}
	if u, again := p.wrap[o.key]; again && !u.differs(o.modified) {
		p.wrap[o.key] = use{o.at, o.size, o.at, o.modified}
		return p.turned(f, o)
	}
	before, seen := p.cur[o.key]
	seen = seen && !before.differs(o.modified)
	at := before.at
	same := p.newest[o.pid] == o.key
	if len(p.newest) >= maxFDs || p.newest == nil {
		p.newest = map[int]detect.FileKey{}
	}
	p.newest[o.pid] = o.key
	switch {
	case !seen:
		if p.wrap != nil {
			p.missed++
			if 2*p.missed > len(p.wrap)+2 { // the files that were opened again are an exception
				for k, t := range p.wrap {
					p.cur[k] = t
				}
				p.wrap = nil
			}
		}
		p.add(o)
		return span{}, false
	case o.at-at < again && !o.fell, o.rewind && at > f.Last, same && len(p.cur) > 1 && !o.rewind:
		p.cur[o.key] = use{o.at, o.size, before.first, cmp.Or(o.modified, before.modified)} // the same use of the file
		return span{}, false
	}
	if p.wrap == nil {
		p.wrap, p.missed, p.turn, p.open = map[detect.FileKey]use{}, 0, o.at, o.open
		p.pass.path = o.path
	}
	p.wrap[o.key] = use{o.at, o.size, o.at, o.modified}
	return p.turned(f, o)
}

// alone returns the passes over a file that is the only one that was opened since it was opened first, once it was so
// three times. The pass that goes on is the third one.
func (p *passes) alone(o *opened, f *look) []span {
	l := &p.lone
	switch {
	case l.key != o.key, l.differs(o.modified):
		*l = lone{key: o.key, modified: o.modified, last: o.at, pass: newPass(o.at, o.open, f, o.pid, o.path)}
		return nil
	case o.at-l.last < again && !o.fell, o.rewind && l.last > f.Last:
		l.last = o.at
		return nil
	}
	l.pass.count = 1
	l.pass.close(o.at, o.open, f)
	l.spans = append(l.spans, l.pass)
	l.last, l.pass = o.at, newPass(o.at, o.open, f, o.pid, o.path)
	ended := l.spans
	if len(ended) < 2 || len(p.cur) < 2 { // a pass over one file is found as any other
		l.spans = ended[max(0, len(ended)-1):]
		return nil
	}
	l.spans = nil
	p.start(o.at, o.open, f, o.pid, o.path)
	p.cur, p.wrap = map[detect.FileKey]use{o.key: {o.at, o.size, o.at, o.modified}}, nil
	return ended
}

// turned ends the pass if enough files were opened again.
func (p *passes) turned(f *look, o *opened) (ended span, ok bool) {
	need := max(1, min(p.large(), 3), min(wrapMost, int(wrapShare*float64(len(p.cur)))))
	if len(p.wrap) < need || 4*p.missed > len(p.wrap) {
		return span{}, false
	}
	all := !f.Exact && p.refine(f, o)
	s := p.pass
	s.count = p.large() * int(p.mask+1)
	s.close(p.turn, p.open, f)
	if p.held != nil {
		p.correct()
	}
	p.bytes, p.files, p.full, p.counted = 0, s.count, p.cur, 0
	if read, ok := s.amount(detect.ReadChars); ok && all && s.count >= minFiles {
		p.bytes = read
	}
	p.next(f, p.turn, p.open, o.pid, o.path)
	return s, true
}

// next begins the next pass. Files that were opened since are of it.
func (p *passes) next(f *look, at, open time.Duration, pid int, path string) {
	cur := map[detect.FileKey]use{}
	for _, of := range [...]map[detect.FileKey]use{p.cur, p.wrap} {
		for k, u := range of {
			if u.at >= at {
				cur[k] = u
			}
		}
	}
	p.start(at, open, f, pid, path)
	p.cur, p.wrap, p.missed = cur, nil, 0
}

// close ends the last pass with the job. It returns what has ended.
func (p *passes) close(f *look) (ended []span) {
	if !p.begun {
		return nil
	}
	for k, t := range p.wrap {
		p.cur[k] = t
	}
	s := p.pass
	if s.count = p.large() * int(p.mask+1); p.bytes > 0 {
		s.count = p.files
	}
	end := f.worked(s.begin, f.At)
	if p.held != nil {
		p.correct()
		ended = append(ended, *p.held)
		p.held, p.early = nil, nil
	}
	s.close(end, f.At-f.Last, f)
	s.end = f.readUntil(&s, end)
	return append(ended, s)
}

// large returns the number of files of the pass, without those that are small next to the others if it has few files: a
// log, or settings.
func (p *passes) large() (n int) {
	if len(p.cur) > maxFew {
		return len(p.cur)
	}
	largest := int64(0)
	for _, u := range p.cur {
		largest = max(largest, u.size)
	}
	for _, u := range p.cur {
		if u.size >= largest/1000 {
			n++
		}
	}
	return n
}

func (p *passes) start(at, open time.Duration, f *look, pid int, path string) {
	p.begun, p.pass = true, newPass(at, open, f, pid, path)
}

func newPass(at, open time.Duration, f *look, pid int, path string) span {
	s := span{begin: at, beginOpen: open, pass: true, pid: pid, path: path, looks: f.looksUntil(at)}
	s.from = f.levelsAt(at)
	if !f.maps.counts(pid) {
		s.from[touched] = math.NaN()
	}
	s.whole = s.from.known()
	s.base = others(f, startedAfter(at))
	return s
}

// correct sets the begin of the first pass, once the files of the second one are known. Looks may miss most of them.
func (p *passes) correct() {
	if p.bytes > 0 {
		return
	}
	for i := range p.early {
		e := &p.early[i]
		if u, common := p.cur[e.key]; common && !u.differs(e.modified) && e.at < p.held.end {
			p.held.begin, p.held.beginOpen, p.held.from = e.at, e.open, e.from
			return
		}
	}
}

func startedAfter(at time.Duration) func(*detect.Process) bool {
	return func(p *detect.Process) bool { return p.Started > at }
}

func (p *passes) add(o *opened) {
	p.cur[o.key] = use{o.at, o.size, o.at, o.modified}
	if len(p.cur) <= maxFiles {
		return
	}
	p.mask = p.mask<<1 | 1
	for k := range p.cur {
		if hash(k)&p.mask != 0 {
			delete(p.cur, k)
		}
	}
	for k := range p.wrap {
		if hash(k)&p.mask != 0 {
			delete(p.wrap, k)
		}
	}
}
