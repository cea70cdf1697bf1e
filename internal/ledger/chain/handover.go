package chain

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// Handovers are the moments at which a thread had to do with those that bring its data: one of them waited for the
// other. A training takes a batch from its workers, and asks them for the next one.
type Handovers struct {
	all   []Handover    // in the order of time
	since time.Duration // all are known from here on
}

// Handover is one of them.
type Handover struct {
	At    time.Duration
	By    int32 // the process, if that is another one; else 0
	Takes bool  // the thread waited, and the other one ended that
	Asks  bool  // the thread asks for a batch: it wakes a thread of its process that passes this on to workers
}

// hands is what a thread has to do with others.
type hands struct {
	over     *Handovers    // of a thread that leads; nil before the first call for them
	outward  bool          // it had to do with another process of the same program
	given    int           // pauses of a thread that leads, which it ended
	taken    int           // its own, which that one ended
	busy     time.Duration // on a CPU, so far
	forked   int           // the first thread of the process that it began last
	forkedAt time.Duration
	worker   int           // the process that its creator began just before it; 0 for none
	readAt   time.Duration // when its calls returned data last; 0 for never
}

const (
	// maxHandovers is 20 minutes of steps of 0.3 s, in 64 KiB. When there are so many, the older half is dropped.
	maxHandovers = 4096
)

// Between returns the handovers in an interval. All are known from since on. They are valid until the next reading.
func (h *Handovers) Between(from, to time.Duration) (all []Handover, since time.Duration) {
	if h == nil {
		return nil, to
	}
	first, _ := slices.BinarySearchFunc(h.all, from, order)
	end, _ := slices.BinarySearchFunc(h.all, to, order)
	return h.all[first:max(first, end)], h.since
}

func order(h Handover, at time.Duration) int { return cmp.Compare(h.At, at) }

func (h *Handovers) add(one Handover) {
	n := len(h.all)
	if n > 0 && one.At-h.all[n-1].At < MinPause { // of the same batch
		last := &h.all[n-1]
		last.Asks, last.Takes = last.Asks || one.Asks, last.Takes || one.Takes
		last.By = cmp.Or(last.By, one.By)
		return
	}
	if n >= maxHandovers {
		h.since = h.all[n/2].At
		h.all = append(h.all[:0], h.all[n/2:]...)
	}
	h.all = append(h.all, one)
}

// takes notes a short wait for one that brings data. Alone it is no handover.
func (h *Handovers) takes(at time.Duration) {
	if n := len(h.all); n > 0 && at-h.all[n-1].At < MinPause {
		h.all[n-1].Takes = true
	}
}

// Handovers returns those of a thread, from the first call for it on; nil if it is not known. They stay when the
// thread has ended.
func (t *Timeline) Handovers(tid int) *Handovers {
	th := t.threads[tid]
	if th == nil {
		return nil
	}
	if th.hands.over == nil {
		th.hands.over = &Handovers{since: t.until}
	}
	return th.hands.over
}

// wakes notes that a thread ended the pause of another one, which began at a moment.
func (t *Timeline) wakes(waker, woken *thread, began time.Duration, e *sample.ThreadEvent) {
	if e.WakerKind != sample.UserThread {
		return // over TCP, as requests to a server
	}
	if waker.pid != woken.pid && waker.job == woken.job && t.sameProgram(waker, woken) {
		waker.hands.outward, woken.hands.outward = true, true
	}
	if e.At-began < MinPause {
		if h := woken.hands.over; h != nil && waker.pid != woken.pid && t.brings(waker, woken, e.At) {
			h.takes(e.At)
		}
		return
	}
	waker.gives.some = waker.gives.some || t.begunBy(woken, waker)
	if h := woken.hands.over; h != nil {
		waker.hands.given++
		if t.brings(waker, woken, e.At) {
			h.add(Handover{At: e.At, By: otherProcess(waker, woken), Takes: true})
		}
	}
	if h := waker.hands.over; h != nil {
		woken.hands.taken++
		if asks := t.passesOn(woken, waker); asks || t.brings(woken, waker, e.At) {
			h.add(Handover{At: e.At, By: otherProcess(woken, waker), Asks: asks})
		}
	}
}

// otherProcess returns the process of a thread, if it is not that of the leading one.
func otherProcess(th, leader *thread) int32 {
	if th.pid == leader.pid {
		return 0
	}
	return int32(th.pid)
}

// passesOn reports whether all that a thread does for one that leads is to pass on to a worker process which batch to
// make.
func (t *Timeline) passesOn(th, leader *thread) bool {
	h := &th.hands
	if th.pid != leader.pid || float64(h.given) >= maxGiven*float64(h.taken) ||
		h.busy > time.Duration(h.taken)*passingTime {
		return false // it works itself, or hands something back
	}
	worker := t.threads[h.worker]
	return h.outward || worker != nil && worker.died == 0 && t.sameProgram(worker, th)
}

// brings reports whether a thread brings data for one that leads: it is of a worker process that this program started,
// or passes on what those do, or reads data itself. Programs of another name, such as a logger, are no workers.
func (t *Timeline) brings(th, leader *thread, at time.Duration) bool {
	switch {
	case th.job != leader.job:
		return false
	case th.pid != leader.pid:
		return t.sameProgram(th, leader)
	}
	return th.hands.outward || th.hands.readAt != 0 && at-th.hands.readAt < asksFor
}

// sameProgram reports whether two processes run the same program, by their names. PyTorch renames some of its threads.
func (t *Timeline) sameProgram(a, b *thread) bool {
	first, second := t.threads[a.pid], t.threads[b.pid]
	if first == nil || second == nil || first.name == "" {
		return false
	}
	const torch = "pt_"
	return first.name == second.name || strings.HasPrefix(first.name, torch) && strings.HasPrefix(second.name, torch)
}

// starts notes that a thread began another one. If it has begun a process just before, as a worker, the new thread may
// pass on what that is to do.
func (creator *thread) starts(th *thread, at time.Duration) {
	switch {
	case creator == nil:
	case th.pid != creator.pid:
		creator.hands.forked, creator.hands.forkedAt = th.tid, at
	case creator.hands.forked != 0 && at-creator.hands.forkedAt < startsFor:
		th.hands.worker = creator.hands.forked
	}
}

// read notes that calls have returned data.
func (h *hands) read(e *sample.ThreadEvent) {
	if e.Chars > 0 {
		h.readAt = e.At
	}
}
