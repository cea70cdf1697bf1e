package chain

import (
	"sort"
	"time"
)

// scenario is something that is different in a replay.
type scenario int

const (
	memory    scenario = iota // no storage: neither waiting nor the kernel's work to fetch data
	pending                   // no waiting for storage, but the kernel's work
	workers                   // twice as many threads that read
	gpu                       // a GPU twice as fast
	network                   // neither storage nor waiting for what peers send
	scenarios int      = iota
)

// clocks are the moments at which a thread would be if something were different. They are on the axis of Stamp.Mono and
// start out equal to it.
//
// The rules: working takes its time. Waiting for storage takes none, if that is what differs. A thread that another one
// woke goes on when both are there. Any other sleep takes its time.
type clocks struct {
	at    [scenarios]time.Duration
	floor [scenarios]time.Duration // where it would be without those other sleeps since another thread woke it
}

// jobTimes is what is known of all threads of a job.
type jobTimes struct {
	id        string
	threads   []*thread
	work      time.Duration // CPU time of the threads that are needed, without what the kernel worked to fetch data
	leading   map[int]*lead // by thread
	waiting   int           // threads that wait for storage now
	requested time.Duration // when a thread requested data, or began to wait for them
	spent     Spent
}

// lead is how a thread that drives a GPU waits for it.
type lead struct {
	spinning float64 // share of its running time in which the GPU worked
	sleeping float64 // share of its other sleeps in which the GPU worked
	gpu      bool    // there is one
}

// worked counts work that takes time without storage, too. A thread of a pool that neither reads nor leads may spin
// until it gets work: what it did counts once it wakes another thread. If the leading thread waits for it, that is in
// its clocks.
func (th *thread) worked(length time.Duration) {
	if _, leads := th.job.leading[th.tid]; leads || th.reads || th.tid == th.pid {
		th.job.work += length
		return
	}
	th.unproved += length
}

// proved counts the work since the last wake-up: the thread wakes another one with its result.
func (th *thread) proved() {
	th.job.work += min(th.unproved, maxUnproved)
	th.unproved = 0
}

// lengths returns how long a segment takes in each scenario, if no thread ended it.
func (th *thread) lengths(s *segment) (of [scenarios]time.Duration) {
	length := s.to - s.from
	of = [scenarios]time.Duration{length, length, length, length, length}
	l, leads := th.job.leading[th.tid]
	part := func(share float64) time.Duration { return time.Duration(float64(length) * share) }
	switch s.kind {
	case running:
		of[memory] -= part(float64(s.fetch) + float64(s.slow))
		if leads {
			of[gpu] -= part(l.spinning / 2)
		}
	case ready:
		of[memory] -= part(float64(s.fetch))
		if s.serves {
			of[memory] = 0
		}
	case storage, readyAfterStorage:
		of[memory], of[pending] = 0, 0
	case asleep:
		if s.receives {
			of[network] = 0
		}
		if leads {
			of[gpu] -= part(l.sleeping / 2)
		}
	}
	if th.reads && !leads && s.kind != asleep {
		of[workers] /= 2
	}
	if s.kind != asleep {
		of[network] = of[memory]
	}
	if s.kind == running {
		of[network] -= part(float64(s.slowNetwork) - float64(s.slow))
	}
	return of
}

// add moves the clocks over a segment.
func (c *clocks) add(t *Timeline, th *thread, s *segment) {
	if s.kind == asleep {
		w := t.threads[int(s.waker)]
		if w == nil && s.attends {
			w = t.attended(th, s.from, s.to)
		}
		if w != nil {
			c.meet(w.clocksAt(t, s.to), w.progress(t, s.from, s.to, maxServing))
			if s.attends && w.died != 0 {
				c.wait(s.to - max(s.from, w.died)) // until the next look
			}
			return
		}
	}
	of := th.lengths(s)
	for i := range c.at {
		c.at[i] += of[i]
		if s.kind != asleep {
			c.floor[i] += of[i]
		}
	}
}

// meet moves the clocks to when a thread and the one that wakes it are both there. The waker may have slept for
// something else before, and have been there earlier had it been asked earlier, as a thread that waits for timers: the
// sleeper waits only for sleeps within its own. at are the waker's clocks then, within its progress in the sleep.
func (c *clocks) meet(at clocks, within [scenarios]time.Duration) {
	for i := range c.at {
		now := min(max(c.at[i], at.at[i]), max(c.at[i]+within[i], at.floor[i]))
		c.floor[i] = min(max(c.floor[i], at.floor[i]), now)
		c.at[i] = now
	}
}

// wait moves the clocks over a sleep that takes its time.
func (c *clocks) wait(length time.Duration) {
	for i := range c.at {
		c.at[i] += max(0, length)
	}
}

// Bounds of progress.
const (
	maxServing  = 4   // threads that wake one another
	maxProgress = 256 // segments of each
)

// progress returns how far a thread's clocks went from one moment to another. What it did before the newest maxProgress
// segments takes its time.
func (th *thread) progress(t *Timeline, from, to time.Duration, depth int) (sum [scenarios]time.Duration) {
	add := func(s segment) {
		s.from, s.to = max(s.from, from), min(s.to, to)
		if s.from >= s.to {
			return
		}
		var of [scenarios]time.Duration
		if w := t.threads[int(s.waker)]; s.kind == asleep && s.waker != 0 && w != nil && depth > 0 {
			of = w.progress(t, s.from, s.to, depth-1)
		} else {
			of = th.lengths(&s)
		}
		for i := range sum {
			sum[i] += of[i]
		}
	}
	first := sort.Search(len(th.segments), func(i int) bool { return th.segments[i].to > from })
	if n := len(th.segments) - maxProgress; n > first {
		add(segment{from: from, to: th.segments[n].from, kind: unknown})
		first = n
	}
	for i := first; i < len(th.segments) && th.segments[i].from < to; i++ {
		add(th.segments[i])
	}
	if th.died == 0 {
		open := segment{from: th.since, to: to, kind: th.openKind()}
		open.receives = open.kind == asleep && t.reasons.get(th.pause.reason).From != ""
		add(open)
	}
	return sum
}

// openKind is the kind of the state that has not ended.
func (th *thread) openKind() kind {
	switch th.state {
	case stateOn:
		return running
	case stateOff:
		return th.pause.kind
	}
	return unknown
}

// clocksAt returns the clocks at a moment of the open state. Of a sleep that has not ended, nothing is known yet,
// unless the thread attends others.
func (th *thread) clocksAt(t *Timeline, at time.Duration) clocks {
	c := th.clocks
	s := segment{from: th.since, to: at, kind: th.openKind()}
	if at <= th.since || th.died != 0 {
		return c
	}
	if s.kind == asleep {
		if t.nested >= maxDepth || !t.attends(th) {
			return c
		}
		s.attends = true
		t.nested++
		defer func() { t.nested-- }()
	}
	c.add(t, th, &s)
	return c
}

// clocksAt returns the clocks with which a thread begins: those of its creator, or else of the job's latest thread.
func (t *Timeline) clocksAt(creator int, j *jobTimes, at time.Duration) clocks {
	if th := t.threads[creator]; th != nil && th.job == j {
		return th.clocksAt(t, at)
	}
	if len(j.threads) == 0 {
		same := [scenarios]time.Duration{at, at, at, at, at}
		return clocks{same, same}
	}
	var latest clocks
	for _, th := range j.threads {
		latest = latest.later(th.clocksAt(t, at))
	}
	return latest
}

// later returns the later of two, for each scenario.
func (c clocks) later(than clocks) clocks {
	for i := range c.at {
		c.at[i], c.floor[i] = max(c.at[i], than.at[i]), max(c.floor[i], than.floor[i])
	}
	return c
}
