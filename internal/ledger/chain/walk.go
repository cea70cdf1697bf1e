package chain

import (
	"cmp"
	"slices"
	"sort"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// Piece is a stretch of the time of a thread, and what it came down to.
type Piece struct {
	From, To time.Duration
	Kind     PieceKind
	Fetch    float64 // of Work and NoCore: the share that was for work of the kernel to fetch data
	Feeder   bool    // another thread that reads data did it
	reason   reasonID
	of       *thread // of Other: whose time it is
}

// PieceKind is what a piece came down to.
type PieceKind uint8

// The kinds of pieces.
const (
	Work    PieceKind = iota // on a CPU
	NoCore                   // ready, without a CPU
	Storage                  // waiting for storage
	Other                    // waiting for something else; see Timeline.Reason
	Unknown                  // no evidence
)

// Bounds of one walk.
const (
	maxDepth  = 16
	maxPieces = 1 << 16
)

// walker collects the pieces of one walk.
type walker struct {
	*Timeline
	pieces   []Piece
	path     []*thread
	standIns int
}

// Walk appends to pieces what the time of a thread came down to, in the order of time and without a gap. What a thread
// slept for until another one woke it is replaced by what that one did meanwhile, and so on.
func (t *Timeline) Walk(tid int, from, to time.Duration, pieces []Piece) []Piece {
	w := walker{Timeline: t, pieces: pieces}
	th := t.threads[tid]
	if th == nil {
		return append(pieces, Piece{From: from, To: to, Kind: Unknown})
	}
	w.walk(th, from, to)
	return w.pieces
}

// Sleeps returns when a thread began its sleeps that other followed threads ended, from one moment to another. A sleep
// goes on if what the thread does before the next is much less than usual: what it was woken for was not what it needs.
func (t *Timeline) Sleeps(tid int, from, to time.Duration) (began []time.Duration) {
	th := t.threads[tid]
	if th == nil {
		return nil
	}
	var did []time.Duration // before each
	all, last := time.Duration(0), from
	first := sort.Search(len(th.segments), func(i int) bool { return th.segments[i].from > from })
	for i := first; i < len(th.segments) && th.segments[i].from < to; i++ {
		if s := &th.segments[i]; s.kind == asleep && s.waker != 0 {
			began, did = append(began, s.from), append(did, s.from-last)
			all, last = all+s.from-last, s.to
		}
	}
	n := 0
	for i, at := range began {
		if did[i].Seconds() >= muchLess*all.Seconds()/float64(len(began)) {
			began[n], n = at, n+1
		}
	}
	return began[:n]
}

func (w *walker) add(p Piece) {
	if p.To <= p.From {
		return
	}
	if n := len(w.pieces); n > 0 {
		last := &w.pieces[n-1]
		same := last.Kind == p.Kind && last.Fetch == p.Fetch && last.Feeder == p.Feeder && last.reason == p.reason &&
			last.of == p.of
		if (same || n >= maxPieces) && last.To == p.From {
			last.To = p.To
			return
		}
	}
	w.pieces = append(w.pieces, p)
}

func (w *walker) walk(th *thread, from, to time.Duration) {
	w.path = append(w.path, th)
	defer func() { w.path = w.path[:len(w.path)-1] }()
	if from < th.born {
		until := min(to, th.born)
		if creator := w.threads[th.creator]; creator != nil && w.mayFollow(creator) {
			w.walk(creator, from, until)
		} else {
			w.add(Piece{From: from, To: until, Kind: Unknown})
		}
		from = until
	}
	first := sort.Search(len(th.segments), func(i int) bool { return th.segments[i].to > from })
	for i := first; i < len(th.segments) && from < to; i++ {
		s := &th.segments[i]
		if s.from > from {
			w.add(Piece{From: from, To: min(s.from, to), Kind: Unknown}) // forgotten
			from = min(s.from, to)
		}
		end := min(s.to, to)
		w.segment(th, s, from, end)
		from = end
	}
	if from < to {
		w.open(th, from, to)
	}
}

func (w *walker) mayFollow(th *thread) bool {
	return len(w.path) < maxDepth && !slices.Contains(w.path, th)
}

func (w *walker) feeder(th *thread) bool { return th.reads && th != w.path[0] }

// segment adds a part of a segment.
func (w *walker) segment(th *thread, s *segment, from, to time.Duration) {
	if from >= to {
		return
	}
	p := Piece{From: from, To: to, Feeder: w.feeder(th)}
	switch s.kind {
	case running:
		p.Kind, p.Fetch = Work, float64(s.fetch)
	case ready:
		p.Kind, p.Fetch = NoCore, float64(s.fetch)
	case readyAfterStorage, storage:
		p.Kind = Storage
	case taken:
		p.Kind, p.of = Other, th
		p.reason = w.reason(Reason{Kind: ForSteal, Name: "stolen by the hypervisor"})
	case asleep:
		p.Kind, p.reason, p.of = Other, s.reason, th
		var waker *thread
		if next := w.threads[int(s.waker)]; s.waker != 0 && next != nil && w.mayFollow(next) {
			waker = next
		}
		if w.reasons.get(s.reason).Kind == ForLock {
			w.lock(waker, from, to, p)
			return
		}
		if waker != nil {
			w.walk(waker, from, to)
			return
		}
		if s.attends {
			w.attend(th, from, to, p)
			return
		}
		if w.reasons.get(s.reason).Name == severalFiles { // an event loop that threads of the job work for
			if next := w.receiver(from, to); next != nil {
				w.walk(next, from, to)
				return
			}
		}
	case unknown:
		p.Kind = Unknown
	}
	w.add(p)
}

// open adds a part of the state that has not ended. What a thread sleeps for is known when it is woken; until then it
// is assumed to be what it was the last time.
func (w *walker) open(th *thread, from, to time.Duration) {
	s := segment{kind: th.openKind(), reason: w.newest(th)}
	switch {
	case th.died != 0 && from >= th.died:
		s = segment{kind: asleep, reason: w.reason(Reason{Kind: ForChild, Name: "child process"})}
	case s.kind == asleep:
		s.attends = w.attends(th)
		if next := w.expected(th); next != nil {
			s.waker = int32(next.tid)
		}
	}
	w.segment(th, &s, from, to)
}

// expected returns the thread that is likely to end a pause.
func (w *walker) expected(th *thread) *thread {
	if th.pause.call == sample.ChildCall {
		return w.child(th)
	}
	if w.reasons.get(th.pause.reason).Kind == ForStop {
		return nil
	}
	usual := th.usual[th.pause.call]
	known, waker := usual > 0, int(usual-1)
	if known && waker == 0 {
		return nil
	}
	sleepsFor := func(k ReasonKind) bool { return th.pause.kind == asleep && w.reasons.get(th.pause.reason).Kind == k }
	if sleepsFor(ForLock) && (!known || w.until-th.since > joinPatience) {
		if next := w.joined(th); next != nil {
			return next
		}
	}
	if next := w.threads[waker]; known && next != nil && w.lives(next) {
		if sleepsFor(ForPipe) {
			return w.worker(th, next)
		}
		return next
	}
	switch { // a first result, from a worker: what it does may take longer than patience
	case known:
		return nil
	case sleepsFor(ForPipe):
		if child := w.child(th); child != nil {
			return w.worker(th, child)
		}
		return th.job.busiest(max(th.since, w.until-recently), w.until, func(c *thread) bool { // of a shell's pipeline
			return c.pid != th.pid && w.mayFollow(c)
		})
	case sleepsFor(ForEvent) && th.pause.call.Polls():
		return w.attended(th, max(th.since, w.until-recently), w.until)
	}
	return nil
}

// worker returns the thread that makes what a thread waits for at a pipe: the one that gave it something last, or the
// busiest one of that program, if that one sleeps now. It may only pass on what another one makes.
func (w *walker) worker(th, last *thread) *thread {
	if last.openKind() != asleep {
		return last
	}
	return cmp.Or(th.job.busiest(max(th.since, w.until-recently), w.until, func(c *thread) bool {
		return c.pid != th.pid && w.mayFollow(c) && w.sameProgram(c, last)
	}), last)
}

// joined returns the busiest thread that a thread created in its own process. Waiting for it to end looks like waiting
// for a lock, for all of its life: a JVM's first thread waits for main, and many programs start one thread to work.
func (w *walker) joined(th *thread) *thread {
	return th.job.busiest(max(th.since, w.until-recently), w.until, func(c *thread) bool {
		return c.pid == th.pid && c.creator == th.tid && w.lives(c)
	})
}

// lives reports whether a thread lived at Until: events after it may have ended it.
func (t *Timeline) lives(th *thread) bool { return th.died == 0 || th.died > t.until }

// child returns the first thread of the youngest living child process.
func (w *walker) child(th *thread) (found *thread) {
	born := th.born
	if first := w.threads[th.pid]; first != nil {
		born = first.born
	}
	for _, c := range th.job.threads {
		if c.tid != c.pid || !w.lives(c) || c.pid == th.pid {
			continue
		}
		if c.born < born { // a child is younger
			continue
		}
		// One that ran before the job was followed has no known creator.
		if creator := w.threads[c.creator]; c.creator != 0 && (creator == nil || creator.pid != th.pid) {
			continue
		}
		if found == nil || c.born > found.born || c.born == found.born && c.tid > found.tid {
			found = c
		}
	}
	return found
}

// Settled returns the moment up to which the pieces of a thread cannot change any more. A sleep is settled when it is
// over, or after patience. The first sleeps for nothing but a time may turn out to be between looks at other threads:
// they are settled when that is known, or after twice as long.
func (t *Timeline) Settled(tid int, patience time.Duration) time.Duration {
	th := t.threads[tid]
	if th != nil && th.looks.n > 0 && !th.looks.enough {
		return max(th.looks.began, t.until-2*patience)
	}
	if th == nil || th.state != stateOff || th.pause.kind != asleep {
		return t.until
	}
	return max(th.since, t.until-patience)
}

// Times are the clocks of a thread and its job at a moment.
type Times struct {
	Memory, Pending, Workers, GPU, Network time.Duration

	Work time.Duration // CPU time of the job's threads that are needed, without fetching data
}

// With combines each clock with the same one of other times.
func (t Times) With(other Times, combine func(x, y time.Duration) time.Duration) Times {
	return Times{
		Memory: combine(t.Memory, other.Memory), Pending: combine(t.Pending, other.Pending),
		Workers: combine(t.Workers, other.Workers), GPU: combine(t.GPU, other.GPU),
		Network: combine(t.Network, other.Network), Work: combine(t.Work, other.Work),
	}
}

// TimesAt returns the clocks of a thread now, at Until.
func (t *Timeline) TimesAt(tid int) Times {
	th := t.threads[tid]
	if th == nil {
		return Times{}
	}
	w := walker{Timeline: t}
	c := w.expectedClocks(th)
	return Times{c.at[memory], c.at[pending], c.at[workers], c.at[gpu], c.at[network], th.job.work}
}

// expectedClocks are the clocks at Until, as if a sleep that has not ended did so now. The thread that is likely to end
// it may sleep, too: a shell waits for one that waits for a program. Then all of these sleeps end now.
func (w *walker) expectedClocks(th *thread) clocks {
	if th.state != stateOff || th.pause.kind != asleep {
		return th.clocksAt(w.Timeline, w.until)
	}
	c := th.clocks
	s := segment{from: th.since, to: w.until, kind: asleep, receives: w.reasons.get(th.pause.reason).From != "",
		attends: w.attends(th)}
	w.path = append(w.path, th)
	if next := w.expected(th); next != nil && w.mayFollow(next) {
		s.waker = int32(next.tid)
		if !w.attends(next) {
			c.meet(w.expectedClocks(next), next.progress(w.Timeline, s.from, s.to, maxServing))
			return c
		}
	}
	c.add(w.Timeline, th, &s)
	return c
}

// Lead records that a thread leads, whether it drives a GPU, and in which share of its running time and of its sleeping
// the GPU worked.
func (t *Timeline) Lead(tid int, gpu bool, spinning, sleeping float64) {
	th := t.threads[tid]
	if th == nil {
		return
	}
	if th.job.leading == nil {
		th.job.leading = map[int]*lead{}
	}
	th.job.leading[tid] = &lead{spinning, sleeping, gpu}
}
