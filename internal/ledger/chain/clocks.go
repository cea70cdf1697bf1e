package chain

import "time"

// clocks are the moments at which a thread would be if something were different. They are on the axis of Stamp.Mono
// and start out equal to it.
//
// The rules: working takes its time. Waiting for storage takes none, if that is what differs. A thread that another one
// woke goes on when both are there. Any other sleep takes its time.
type clocks struct {
	memory  time.Duration // no storage: neither waiting nor the kernel's work to fetch data
	pending time.Duration // no waiting for storage, but the kernel's work
	workers time.Duration // twice as many threads that read
	gpu     time.Duration // a GPU twice as fast
}

// jobTimes is what is known of all threads of a job.
type jobTimes struct {
	threads int
	running share         // see thread.running
	work    time.Duration // CPU time of all threads, without what the kernel worked to fetch data
	leading map[int]*lead // by thread
}

// lead is how a thread that drives a GPU waits for it.
type lead struct {
	spinning float64 // share of its running time in which the GPU worked
	sleeping float64 // share of its other sleeps in which the GPU worked
}

// add moves the clocks over a segment.
func (c *clocks) add(t *Timeline, th *thread, s *segment) {
	length := s.to - s.from
	if s.kind == asleep && s.waker != 0 {
		if w := t.threads[int(s.waker)]; w != nil {
			before := *c
			if c.meet(t, w, s) {
				th.rest.extend(s, before)
			}
			return
		}
	}
	l, leads := th.job.leading[th.tid]
	memory, half, gpu := length, length, length
	switch s.kind {
	case running:
		memory = time.Duration(float64(length) * (1 - float64(s.fetch)))
		th.job.work += memory
		if leads {
			gpu -= time.Duration(float64(length) * l.spinning / 2)
		}
	case ready:
		memory = time.Duration(float64(length) * (1 - float64(s.fetch)))
	case storage, readyAfterStorage:
		memory = 0
	case asleep:
		th.rest.extend(s, *c)
		if leads {
			gpu -= time.Duration(float64(length) * l.sleeping / 2)
		}
	}
	if th.reads && !leads && s.kind != asleep {
		half /= 2
	}
	c.memory += memory
	c.workers += half
	c.gpu += gpu
	if s.kind != storage && s.kind != readyAfterStorage {
		c.pending += length
	}
}

// meet moves the clocks to when a thread and the one that wakes it are both there. A thread that slept for something
// else most of that time, such as one that waits for timers, is not ahead or behind on its own: it serves the sleeper,
// which then waits as long as it did. served reports whether that is so.
func (c *clocks) meet(t *Timeline, waker *thread, s *segment) (served bool) {
	at := waker.clocksAt(t, s.to)
	if rest := &waker.rest; rest.to > s.from && min(rest.to, s.to)-max(rest.from, s.from) > (s.to-s.from)/2 {
		began := rest.clocks.plus(max(0, s.from-rest.from))
		c.memory += max(0, at.memory-began.memory)
		c.pending += max(0, at.pending-began.pending)
		c.workers += max(0, at.workers-began.workers)
		c.gpu += max(0, at.gpu-began.gpu)
		return true
	}
	c.memory, c.pending = max(c.memory, at.memory), max(c.pending, at.pending)
	c.workers, c.gpu = max(c.workers, at.workers), max(c.gpu, at.gpu)
	return false
}

// rest is a stretch in which a thread mostly slept, and no followed thread that works ended that.
type rest struct {
	from, to time.Duration
	clocks   clocks // at from
}

// extend adds a sleep. before are the clocks at its start.
func (r *rest) extend(s *segment, before clocks) {
	if r.to == 0 || s.from-r.to > (s.to-r.from)/4 {
		r.from, r.clocks = s.from, before
	}
	r.to = s.to
}

func (c clocks) plus(d time.Duration) clocks {
	return clocks{c.memory + d, c.pending + d, c.workers + d, c.gpu + d}
}

// clocksAt returns the clocks at a moment of the open state.
func (th *thread) clocksAt(t *Timeline, at time.Duration) clocks {
	c := th.clocks
	if at <= th.since || th.died != 0 {
		return c
	}
	s := segment{from: th.since, to: at, kind: running}
	work := th.job.work
	if th.state == stateOff {
		s.kind, s.reason = th.pause.kind, th.pause.reason
		if s.kind == asleep { // a wake-up that is still to come; without it nothing is known
			return c
		}
	}
	c.add(t, th, &s)
	th.job.work = work
	return c
}

// clocksAt returns the clocks with which a thread begins: those of its creator, or else of the job's latest thread.
func (t *Timeline) clocksAt(creator int, j *jobTimes, at time.Duration) clocks {
	if th := t.threads[creator]; th != nil && th.job == j {
		return th.clocksAt(t, at)
	}
	if j.threads == 0 {
		return clocks{at, at, at, at}
	}
	var latest clocks
	for _, th := range t.threads {
		if th.job == j {
			c := th.clocksAt(t, at)
			latest.memory, latest.pending = max(latest.memory, c.memory), max(latest.pending, c.pending)
			latest.workers, latest.gpu = max(latest.workers, c.workers), max(latest.gpu, c.gpu)
		}
	}
	return latest
}
