package chain

import (
	"cmp"
	"sort"
	"time"
)

// Bounds of what stands in for an unknown cause.
const (
	maxStandIns = 128 // slices of one walk
)

// lock adds the part of a sleep for a lock. Only threads of the job can release it. If it is not known which one will,
// or if that one polls, the busiest thread stands in, in each slice. If none is busy, one that waits for a peer does.
func (w *walker) lock(waker *thread, from, to time.Duration, p Piece) {
	for ; from < to; from = p.To {
		p.From, p.To = from, min(to, from+standInSlice)
		next := waker
		if waker == nil || waker.polls(p.From, p.To) {
			next = cmp.Or(w.busiest(p.From, p.To), waker, w.receiver(p.From, p.To))
		}
		if next == nil {
			w.add(p)
			continue
		}
		w.walk(next, p.From, p.To)
	}
}

// busiest returns the thread of the job that was active for longest, of those that are not waited for already. It is
// nil if none was, and after maxStandIns.
func (w *walker) busiest(from, to time.Duration) *thread {
	if w.standIns++; w.standIns > maxStandIns {
		return nil
	}
	return w.path[0].job.busiest(from, to, w.mayFollow)
}

// receiver returns a thread of the job that waits for what a peer sends, through a whole stretch: one of the process
// that waits for it, if there is one. It is nil without any.
func (w *walker) receiver(from, to time.Duration) (found *thread) {
	pid := w.path[len(w.path)-1].pid
	for _, th := range w.path[0].job.threads {
		same := found != nil && (th.pid == pid) == (found.pid == pid)
		better := found == nil || th.pid == pid && !same || same && th.tid < found.tid
		if better && w.mayFollow(th) && w.receivesIn(th, from, to) {
			found = th
		}
	}
	return found
}

// receivesIn reports whether a thread waited for what a peer sends, all the time from one moment to another.
func (w *walker) receivesIn(th *thread, from, to time.Duration) bool {
	var waited time.Duration
	th.each(from, to, func(s segment) {
		if s.waker == 0 && s.kind == asleep && w.reasons.get(cmp.Or(s.reason, w.newest(th))).From != "" {
			waited += s.to - s.from
		}
	})
	return waited >= to-from
}

// newest is what a thread sleeps for now: of several files, what ended its last such sleep.
func (w *walker) newest(th *thread) reasonID {
	if th.found != 0 && w.reasons.get(th.pause.reason).Name == severalFiles {
		return th.found
	}
	return th.pause.reason
}

// busiest returns the thread that was active for longest, of those that fit. It is nil if none was.
func (j *jobTimes) busiest(from, to time.Duration, fits func(*thread) bool) (found *thread) {
	var longest time.Duration
	for _, th := range j.threads {
		if !fits(th) {
			continue
		}
		if of := th.active(from, to); of > longest || of == longest && of > 0 && th.tid < found.tid {
			found, longest = th, of
		}
	}
	return found
}

// active returns how long a thread worked, was ready or waited for storage.
func (th *thread) active(from, to time.Duration) (sum time.Duration) {
	th.each(from, to, func(s segment) {
		if s.kind != asleep && s.kind != unknown {
			sum += s.to - s.from
		}
	})
	return sum
}

// polls reports whether a thread slept again and again in a stretch, and no thread ended these sleeps. What it released
// at last did not wait for any of them. Waiting for what a peer sends piece by piece is no polling.
func (th *thread) polls(from, to time.Duration) bool {
	naps, slept, all := 0, time.Duration(0), time.Duration(0)
	th.each(from, to, func(s segment) {
		all += s.to - s.from
		if s.kind == asleep && s.waker == 0 && !s.receives {
			naps, slept = naps+1, slept+s.to-s.from
		}
	})
	return naps >= pollingNaps && slept.Seconds() >= pollingShare*all.Seconds()
}

// each calls f for the parts of a thread's segments in a stretch, with the state that has not ended. It takes at most
// maxProgress segments.
func (th *thread) each(from, to time.Duration, f func(segment)) {
	first := sort.Search(len(th.segments), func(i int) bool { return th.segments[i].to > from })
	for i := first; i < min(len(th.segments), first+maxProgress) && th.segments[i].from < to; i++ {
		s := th.segments[i]
		s.from, s.to = max(s.from, from), min(s.to, to)
		f(s)
	}
	if th.died == 0 && th.since < to && len(th.segments) < first+maxProgress {
		f(segment{from: max(th.since, from), to: to, kind: th.openKind()})
	}
}
