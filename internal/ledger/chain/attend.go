package chain

import (
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// A program that has started others, as a launcher of ranks does, looks again and again whether they have ended, and
// sleeps in between. So does a thread that has started others to work. It waits for what they do. One that also gives
// them work between its sleeps has a time of its own, as a step that sleeps in place of an accelerator: DLIO's do.

// Bounds of a process that does nothing but sleep.
const (
	fewSegments = 64
)

// looks are the sleeps of a thread until timeouts, since it last did something else.
type looks struct {
	n      int
	enough bool          // they are enough to know
	first  bool          // the newest is the first with which they are
	began  time.Duration // of the first sleep
	slept  time.Duration // the newest sleep's length
	clocks clocks        // before the first sleep
}

// gives is how a thread gives work to those that it began: it wakes one from a pause of MinPause.
type gives struct {
	some bool          // since its last sleep
	n    int           // sleeps before which it did
	at   time.Duration // the end of the newest of them
}

// often reports whether a thread does so again and again. The last batches of an epoch are taken without asking for more.
func (g *gives) often(at time.Duration) bool { return g.n >= minLooks && at-g.at < asksFor }

// look notes a segment that is about to be added. A thread that drives a GPU may sleep while that one works.
func (th *thread) look(t *Timeline, s *segment) {
	length := s.to - s.from
	switch {
	case s.kind == asleep && th.gives.some:
		th.gives = gives{n: th.gives.n + 1, at: s.to}
		th.looks = looks{}
	case s.kind == asleep && s.timed && !th.drives() && !th.gives.often(s.to):
		l := &th.looks
		if l.n == 0 {
			*l = looks{began: s.from, clocks: th.clocks}
		}
		l.n, l.slept = l.n+1, length
		enough := l.n >= minLooks || l.n >= minPolls && th.pause.call != sample.SleepCall
		if th.pause.call == sample.SleepCall {
			enough = enough || length >= longSleep || t.standsFor(th, s.from) != nil
		}
		l.first = enough && !l.enough
		l.enough = l.enough || l.first
		s.attends = l.enough
		if l.first {
			for i := len(th.segments) - 1; i >= 0 && th.segments[i].from >= l.began; i-- {
				th.segments[i].attends = th.segments[i].timed
			}
		}
	case s.kind == ready, s.kind == running && length <= th.looks.longest():
	case th.looks.n > 0:
		th.looks = looks{}
	}
}

// longest is how long a look may take after the newest sleep.
func (l *looks) longest() time.Duration {
	return max(maxLook, time.Duration(lookShare*float64(l.slept)))
}

// attends reports whether the open state of a thread is such a sleep.
func (t *Timeline) attends(th *thread) bool {
	if th.state != stateOff || th.pause.kind != asleep || !th.pause.mayTimeOut() || th.drives() || th.gives.some ||
		th.gives.often(t.until) {
		return false
	}
	if th.looks.enough || th.pause.call != sample.SleepCall {
		return th.looks.enough
	}
	return t.until-th.since >= longSleep || t.standsFor(th, th.since) != nil
}

// drives reports whether a thread drives a GPU.
func (th *thread) drives() bool {
	l := th.job.leading[th.tid]
	return l != nil && l.gpu
}

// attended returns the thread that another one attends: one that it has created itself, or the first thread of a
// process that its process has begun. Of several, it is the one that is the busiest thread or has begun that one's
// process. A process that does nothing but sleep, as sleep(1) in the loop of a shell, attends what its parent does. It
// is nil if none was active.
func (t *Timeline) attended(th *thread, from, to time.Duration) *thread {
	next := th.job.busiest(from, to, func(c *thread) bool { return t.begunBy(c, th) })
	if next != nil {
		return t.topOf(next, th)
	}
	if parent := t.standsFor(th, to); parent != nil {
		next = th.job.busiest(from, to, func(c *thread) bool { return c.pid != th.pid && t.begunBy(c, parent) })
		return t.topOf(next, parent)
	}
	return nil
}

// topOf returns the first thread of the process that th's process has begun, of those above a thread; or that thread,
// if it is of th's process.
func (t *Timeline) topOf(c, th *thread) *thread {
	for range maxDepth {
		if c == nil || c.pid == th.pid {
			return c
		}
		first := t.threads[c.pid]
		if first == nil || first.died != 0 {
			return c
		}
		creator := t.threads[first.creator]
		if creator == nil || creator.pid == th.pid {
			return first
		}
		c = creator
	}
	return c
}

// standsFor returns the thread that began a process, if the process has done nothing since but begin its only sleep,
// until a moment in it, and has begun no other.
func (t *Timeline) standsFor(th *thread, to time.Duration) (parent *thread) {
	if th.tid != th.pid || len(th.segments) > fewSegments || len(th.segments) > 0 && th.segments[0].from > th.born {
		return nil
	}
	sleeps := 0
	th.each(th.born, to, func(s segment) {
		if s.kind == asleep {
			sleeps++
		}
	})
	begins := func(c *thread) bool { return c.creator == th.tid }
	if sleeps > 1 || th.active(th.born, to) > fewWork || slices.ContainsFunc(th.job.threads, begins) {
		return nil
	}
	return t.threads[th.creator]
}

// begunBy reports whether a thread created another one, or its process began that one's process or an ancestor of it.
func (t *Timeline) begunBy(c, th *thread) bool {
	if c.pid == th.pid {
		return c.creator == th.tid
	}
	for range maxDepth {
		creator := t.threads[c.creator]
		if creator == nil { // it ran before the job was followed
			return th.creator == 0 && th.tid == th.pid && th.pid < c.pid
		}
		if creator.pid == th.pid {
			return true
		}
		c = creator
	}
	return false
}

// attend adds the part of a sleep of a thread that attends others: what the busiest one does, in each slice.
func (w *walker) attend(th *thread, from, to time.Duration, p Piece) {
	for ; from < to; from = p.To {
		p.From, p.To = from, min(to, from+standInSlice)
		next := w.attended(th, p.From, p.To)
		if w.standIns++; next == nil || w.standIns > maxStandIns || !w.mayFollow(next) {
			w.add(p)
			continue
		}
		w.walk(next, p.From, p.To)
	}
}
