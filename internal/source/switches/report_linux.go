package switches

import (
	"cmp"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// report turns the changes since the last reading into events, in the order of time.
func (s *Source) report() {
	slices.SortStableFunc(s.changes, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	all, end := s.changes, len(s.changes)
	for end > 0 && all[end-1].at > s.until { // of threads that were just found asleep
		end--
	}
	s.changes = all[:end]
	defer func() { s.changes = slices.Delete(all, 0, end) }()
	s.explain()
	near := s.near()
	near.learn(s.threads, s.reported, s.until)
	s.reported = s.until
	of := s.account()
	for i := range s.changes {
		c := &s.changes[i]
		e := sample.ThreadEvent{At: sample.OnMonotonic(c.at), TID: c.thread.tid, PID: c.thread.pid}
		switch c.kind {
		case forked:
			e.Kind, e.Job, e.Creator, e.Name = sample.ThreadBegan, c.thread.job.name, c.parent, c.name
		case named:
			e.Kind, e.Name = sample.ThreadNamed, c.name
		case exited:
			e.Kind, e.State, e.Syscall = sample.ThreadOut, sample.StateDead, sample.NoSyscall
		case switchedOut:
			e.Kind = sample.ThreadOut
			if c.pause.ready {
				e.State, e.Syscall = sample.StateReady, sample.NoSyscall
			} else {
				why := &c.pause.cause
				e.State, e.Syscall, e.File, e.Detail, e.Peer = why.state, why.syscall, why.file, why.detail, why.peer
				e.IOWait = why.state == sample.StateBlocked
			}
			of[c.thread].share(&e, c)
		case switchedIn:
			e.Kind = sample.ThreadIn
			if p := c.pause; p != nil && !p.ready {
				e.Woken, e.WakerKind = e.At, sample.Interrupt
				if by := near.waker(p); by != nil {
					e.Waker, e.WakerPID, e.WakerKind = by.tid, by.pid, sample.UserThread
				}
			}
		}
		s.schedule.Events = append(s.schedule.Events, e)
	}
	s.recent = s.recent[:0]
	for _, r := range near {
		if r.to >= s.until-wakeTime && !r.thread.on {
			s.recent = append(s.recent, r)
		}
	}
}

// explain gives each new pause a cause: what was seen in it, or in others of the thread.
func (s *Source) explain() {
	for _, seen := range []bool{true, false} {
		for i := range s.changes {
			c := &s.changes[i]
			p := c.pause
			if c.kind != switchedOut || p.ready || p.seen != seen {
				continue
			}
			length := cmp.Or(p.to, s.until) - p.from
			if seen {
				c.thread.past.add(p.from, length, p.cause)
			} else {
				p.cause = c.thread.past.guess(s.until, length, s.random)
			}
		}
	}
}

// near returns the runs of this reading, and of shortly before, in the order of their ends.
func (s *Source) near() runs {
	near := s.recent
	for i := range s.changes {
		if c := &s.changes[i]; c.began != 0 {
			near = append(near, run{c.thread, c.began, c.at, c.kind == exited})
		}
	}
	for _, th := range s.threads {
		if th.on && th.since != 0 {
			near = append(near, run{th, th.since, s.until, false})
		}
	}
	slices.SortStableFunc(near, func(a, b run) int {
		return cmp.Or(cmp.Compare(a.to, b.to), cmp.Compare(a.thread.tid, b.thread.tid))
	})
	return near
}

// usage is what a thread used since the reading before.
type usage struct {
	counters
	running time.Duration // in all
	stored  uint64        // how many of its pauses were for storage
}

// account reads the sums of the threads that ran, those that ran longest first if there are too many.
func (s *Source) account() map[*thread]*usage {
	of := map[*thread]*usage{}
	var ran []*thread
	for i := range s.changes {
		c := &s.changes[i]
		if c.kind != switchedOut {
			continue
		}
		u := of[c.thread]
		if u == nil {
			u = &usage{}
			of[c.thread] = u
			ran = append(ran, c.thread)
		}
		u.running += c.running
		if c.forStorage() {
			u.stored++
		}
	}
	if len(ran) > maxReads {
		slices.SortFunc(ran, func(a, b *thread) int { return cmp.Compare(of[b].running, of[a].running) })
		ran = ran[:maxReads]
	}
	for _, th := range ran {
		now, err := s.proc.counters(th)
		if err != nil {
			continue
		}
		if th.hasRead {
			of[th].counters = now.since(&th.known)
		}
		th.known, th.hasRead = now, true
	}
	return of
}

func (c *change) forStorage() bool {
	if c.pause == nil || c.pause.ready {
		return false
	}
	why := &c.pause.cause
	return why.state == sample.StateBlocked || why.file == sample.RegularFile
}

func (c *counters) since(was *counters) counters {
	return counters{
		max(0, c.user-was.user), max(0, c.system-was.system),
		c.fetched - min(c.fetched, was.fetched), c.chars - min(c.chars, was.chars),
	}
}

// share gives an event its part: of CPU time by how long the thread ran, and of bytes if it waited for storage.
func (u *usage) share(e *sample.ThreadEvent, c *change) {
	share := 0.0
	if u.running > 0 {
		share = float64(c.running) / float64(u.running)
	}
	switch {
	case u.stored == 0:
		e.Fetched, e.Chars = uint64(share*float64(u.fetched)), uint64(share*float64(u.chars))
	case c.forStorage():
		e.Fetched, e.Chars = u.fetched/u.stored, u.chars/u.stored
	}
	user, system := time.Duration(share*float64(u.user)), time.Duration(share*float64(u.system))
	e.Fetching = c.thread.kernel.fetching(&c.thread.job.kernel, c.running, user, system, e)
}
