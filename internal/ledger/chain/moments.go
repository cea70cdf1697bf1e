package chain

import (
	"runtime"
	"slices"
	"sort"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// Moments holds what leading threads did in the last seconds, from looks at random moments. It answers what Timeline
// does, apart from what takes every change of state. The mean over random moments is unbiased. What the kernel counts
// exactly, the time on a CPU and ready for one, is taken as it is; moments divide the rest. It is not safe for
// concurrent use.
type Moments struct {
	threads map[int]*watched
	until   time.Duration
	arch    string
	reasons reasons
}

// maxWhy bounds the reasons with names; those beyond have their kind alone.
const maxWhy = 1024

// watched is the recent past of a leading thread.
type watched struct {
	job    string
	pieces []Piece         // in order and without a gap
	seen   []time.Duration // the moments
	first  time.Duration   // begin of the first piece ever
	end    time.Duration   // of the newest one
	newest view            // what it was in at its newest moment
	asleep view            // and at the newest one at which it slept
	ahead  time.Duration   // counted time on a CPU and ready, beyond the time that passed
	kernel kernelShare
	lead   lead
	frame  frame
	clocks Times // at the begin of the frame
	crowd  crowd
	spins  float64       // threads of the job that spin, at the newest moment at which it slept
	spun   float64       // s, for how long they did
	took   int           // moments at which it was seen waiting at a pipe, with less than asksFor between two
	tookAt time.Duration // the newest of them
}

// view is what a thread was in at a moment: parts of it, whose weights add up to 1. One that runs has none.
type view []part

type part struct {
	Piece
	weight float64
	afar   bool // it waits for another machine
}

// around is a view with the time that it stands for.
type around struct {
	view
	length float64 // s
}

// NewMoments returns Moments without any.
func NewMoments() *Moments {
	return &Moments{threads: map[int]*watched{}, arch: runtime.GOARCH, reasons: reasons{most: maxWhy}}
}

// Learn adds moments. They are copied.
func (m *Moments) Learn(s *sample.Moments) {
	if s.Arch != "" {
		m.arch = s.Arch
	}
	for i := range s.Threads {
		m.learn(&s.Threads[i], s.Until)
	}
	m.until = max(m.until, s.Until)
}

func (m *Moments) learn(s *sample.Watched, until time.Duration) {
	w := m.threads[s.TID]
	if w == nil || s.From > w.end+silence {
		w = newWatched(s.From)
		w.job = s.Job
		m.threads[s.TID] = w
	}
	if until <= w.end {
		return
	}
	var all []around
	from := w.end
	for i := range s.Moments {
		w.newest = m.viewOf(w, &s.Moments[i], s.Drives)
		if w.newest != nil {
			w.asleep, w.spins = w.newest, spinning(s.Moments[i].Others)
		}
		w.seen = append(w.seen, s.Moments[i].At)
		to := until
		if i+1 < len(s.Moments) {
			to = (s.Moments[i].At + s.Moments[i+1].At) / 2
		}
		all = append(all, around{w.newest, (to - from).Seconds()})
		from = to
	}
	if n := len(w.seen); n == 0 || until-w.seen[n-1] > silence {
		w.add(Piece{Kind: Unknown}, until)
	} else {
		if len(all) == 0 { // no moment fell into this time
			all = append(all, around{w.newest, (until - from).Seconds()})
		}
		w.divide(all, s, until)
	}
	w.spun += w.spins * (until - s.From).Seconds()
	w.close(until)
}

// spinning is how many of the others spin.
func spinning(others []sample.Other) (n float64) {
	for i := range others {
		if o := &others[i]; o.Spins && o.State == sample.StateReady && !o.Reads {
			n += o.Weight
		}
	}
	return n
}

func newWatched(at time.Duration) *watched {
	return &watched{
		first: at, end: at, frame: frame{from: at},
		clocks: Times{Memory: at, Pending: at, Workers: at, GPU: at, Network: at},
	}
}

// divide adds the time up to a moment: what the thread was in, each as long as the counters leave it.
func (w *watched) divide(all []around, s *sample.Watched, until time.Duration) {
	length := (until - w.end).Seconds()
	runs, sleeps := 0.0, 0.0
	for _, one := range all {
		if one.view == nil {
			runs += one.length
		} else {
			sleeps += one.length
		}
	}
	ran, ready, fetch := runs, 0.0, 0.0
	if s.Counted {
		w.ahead += s.Ran + s.Ready
		grown := min(w.ahead, until-w.end)
		w.ahead = min(w.ahead-grown, maxAhead)
		ran = grown.Seconds()
		if s.Ready > 0 {
			ready = s.Ready.Seconds() / (s.Ran + s.Ready).Seconds()
		}
		fetch = w.kernel.fetching(s, slices.ContainsFunc(all, around.isStorage))
	}
	if runs == 0 && ran > 0 { // seen at no moment
		all = append(all, around{nil, ran})
		runs = ran
	}
	if sleeps == 0 && ran < length {
		sleeps = length - ran
		all = append(all, around{w.asleep, sleeps})
	}
	began, at := w.end, 0.0
	add := func(p Piece, seconds float64) {
		at += seconds
		w.add(p, min(until, began+time.Duration(at*1e9)))
	}
	for _, one := range all {
		if one.view == nil {
			of := one.length * ran / max(runs, 1e-9)
			add(Piece{Kind: Work, Fetch: fetch}, of*(1-ready))
			add(Piece{Kind: NoCore}, of*ready)
			continue
		}
		for _, p := range one.view {
			of := p.weight * one.length * (length - ran) / sleeps
			if p.afar {
				w.frame.network += of
			}
			add(p.Piece, of)
		}
	}
	if n := len(w.pieces); n > 0 { // what rounding left
		w.add(w.pieces[n-1], until)
	}
}

// isStorage reports whether a thread waits for storage itself.
func (a around) isStorage() bool {
	return slices.ContainsFunc(a.view, func(p part) bool { return p.Kind == Storage && !p.Feeder })
}

// add adds a piece from the end of the newest one to a moment.
func (w *watched) add(p Piece, to time.Duration) {
	if to <= w.end {
		return
	}
	p.From, p.To = w.end, to
	w.end = to
	w.frame.add(&p)
	if n := len(w.pieces); n > 0 {
		last := w.pieces[n-1]
		last.From, last.To = p.From, p.To
		if last == p {
			w.pieces[n-1].To = to
			return
		}
	}
	w.pieces = append(w.pieces, p)
}

// Forget drops what was before a moment.
func (m *Moments) Forget(before time.Duration) {
	for tid, w := range m.threads {
		if w.end < before {
			delete(m.threads, tid)
			continue
		}
		n := sort.Search(len(w.pieces), func(i int) bool { return w.pieces[i].To > before })
		w.pieces = slices.Delete(w.pieces, 0, n)
		n, _ = slices.BinarySearch(w.seen, before)
		w.seen = slices.Delete(w.seen, 0, n)
	}
	if len(m.reasons.all)-len(m.reasons.free) >= maxWhy/2 { // not while moments are learned: these have no pieces yet
		m.reasons.sweep(m.until, m.eachReason)
	}
}

// Knows reports whether a thread has been looked at recently.
func (m *Moments) Knows(tid int) bool { return m.threads[tid] != nil }

// Covers reports whether what a thread did is known from one moment to another. Before it was looked at, and after it
// has ended, its time is that of another one that leads the job.
func (m *Moments) Covers(tid int, from, to time.Duration) bool {
	w := m.threads[tid]
	if w == nil {
		return false
	}
	if begin := w.begin(); from < begin {
		if s := m.standIn(w, from); s == nil && to <= begin || s != nil && s.end < min(to, begin) {
			return false
		}
	}
	if to <= w.end+slack {
		return true
	}
	s := m.standIn(w, max(from, w.end))
	return s != nil && to <= s.end+slack
}

// begin is the begin of the oldest piece that is kept.
func (w *watched) begin() time.Duration {
	if len(w.pieces) > 0 {
		return w.pieces[0].From
	}
	return w.end
}

// standIn returns the thread that has been looked at for longest, among the others of a thread's job that were looked
// at then; nil without one.
func (m *Moments) standIn(of *watched, at time.Duration) (found *watched) {
	lowest := 0
	for tid, w := range m.threads {
		if w == of || w.job != of.job || w.begin() > at || w.end <= at {
			continue
		}
		if found == nil || w.first < found.first || w.first == found.first && tid < lowest {
			found, lowest = w, tid
		}
	}
	return found
}

// Until is the moment up to which threads have been looked at.
func (m *Moments) Until() time.Duration { return m.until }

// Gap is 0: there are no events that could be lost.
func (m *Moments) Gap() time.Duration { return 0 }

// Settled returns the moment up to which the pieces of a thread cannot change any more.
func (m *Moments) Settled(tid int, _ time.Duration) time.Duration {
	if w := m.threads[tid]; w != nil {
		return w.end
	}
	return m.until
}

// Spun returns how long threads of a job have spun, in thread-seconds, while one that leads it was looked at.
func (m *Moments) Spun(tid int) float64 {
	if w := m.threads[tid]; w != nil {
		return w.spun
	}
	return 0
}

// Heir returns the thread itself: Walk and Covers find who stands in for one that has ended.
func (m *Moments) Heir(tid int, _ time.Duration) int { return tid }

// Sleeps returns nothing: moments do not show when a sleep began.
func (m *Moments) Sleeps(int, time.Duration, time.Duration) []time.Duration { return nil }

// Handovers returns nothing, as Sleeps does.
func (m *Moments) Handovers(int) *Handovers { return nil }

// Seen returns at how many moments a thread was looked at, from one moment to another.
func (m *Moments) Seen(tid int, from, to time.Duration) int {
	w := m.threads[tid]
	if w == nil {
		return 0
	}
	first, _ := slices.BinarySearch(w.seen, from)
	end, _ := slices.BinarySearch(w.seen, to)
	return end - first
}

// Walk appends to pieces what the time of a thread came down to, in the order of time and without a gap.
func (m *Moments) Walk(tid int, from, to time.Duration, pieces []Piece) []Piece {
	w := m.threads[tid]
	if w == nil {
		return append(pieces, Piece{From: from, To: to, Kind: Unknown})
	}
	if begin := w.begin(); from < begin {
		until := min(to, begin)
		pieces = m.standIn(w, from).walk(from, until, pieces)
		from = until
	}
	until := min(to, max(from, w.end))
	pieces = w.walk(from, until, pieces)
	if until < to {
		pieces = m.standIn(w, until).walk(until, to, pieces)
	}
	return pieces
}

// walk appends the pieces of a thread from one moment to another. What is not known of it is Unknown.
func (w *watched) walk(from, to time.Duration, pieces []Piece) []Piece {
	add := func(p Piece) {
		if p.From < p.To {
			pieces = append(pieces, p)
		}
	}
	if w == nil {
		add(Piece{From: from, To: to, Kind: Unknown})
		return pieces
	}
	at := from
	for i := sort.Search(len(w.pieces), func(i int) bool { return w.pieces[i].To > from }); i < len(w.pieces); i++ {
		p := w.pieces[i]
		if p.From >= to {
			break
		}
		add(Piece{From: at, To: min(p.From, to), Kind: Unknown})
		p.From, p.To = max(p.From, at), min(p.To, to)
		add(p)
		at = p.To
	}
	add(Piece{From: at, To: to, Kind: Unknown})
	return pieces
}

// ReasonKind returns the kind of a piece's reason.
func (m *Moments) ReasonKind(p *Piece) ReasonKind { return m.reasons.get(p.reason).Kind }

// Reason returns why a piece of kind Other was.
func (m *Moments) Reason(_ int, p *Piece) Reason { return m.reasons.get(p.reason) }

// eachReason calls use for the reason of each piece, and of what threads were in at their newest moments.
func (m *Moments) eachReason(use func(reasonID)) {
	for _, w := range m.threads {
		for i := range w.pieces {
			use(w.pieces[i].reason)
		}
		for _, v := range []view{w.newest, w.asleep} {
			for i := range v {
				use(v[i].reason)
			}
		}
	}
}

// Lead records in which share of its running time and of its sleeping the GPU worked.
func (m *Moments) Lead(tid int, _ bool, spinning, sleeping float64) {
	if w := m.threads[tid]; w != nil {
		w.lead.spinning, w.lead.sleeping = spinning, sleeping
	}
}

// TimesAt returns the clocks of a thread now, at Until. They have no work: the job's CPU time is known elsewhere.
func (m *Moments) TimesAt(tid int) Times {
	w := m.threads[tid]
	if w == nil {
		return Times{}
	}
	return w.clocks.With(w.frame.times(&w.lead), func(x, y time.Duration) time.Duration { return x + y })
}

// close ends a frame that is long enough.
func (w *watched) close(at time.Duration) {
	if at-w.frame.from >= frameTime {
		w.clocks = w.clocks.With(w.frame.times(&w.lead), func(x, y time.Duration) time.Duration { return x + y })
		w.frame = frame{from: at}
	}
}
