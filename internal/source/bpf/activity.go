//go:build linux && (amd64 || arm64)

package bpf

import (
	"maps"
	"slices"
	"sync/atomic"

	"github.com/stallspan/stallspan/internal/sample"
)

// activity is which followed threads ran since it was asked last.
type activity struct {
	threads map[int]*activeThread // by ID
	ran     []*activeThread       // since the last call of EachRan, or running then
	unsure  bool                  // something is missing
	forked  bool                  // a thread that is not in threads began a process
}

type activeThread struct {
	pid     int
	job     string
	running bool // or nothing is known of it yet
	listed  bool // in ran
	forked  bool // it began a process since the last call of EachRan
}

// maxActive bounds the threads. Ends of threads may be lost.
const maxActive = 1 << 16

func (a *activity) learn(e *sample.ThreadEvent) {
	if e.Kind == sample.ThreadNamed || e.Kind == sample.ThreadFound {
		return
	}
	t := a.threads[e.TID]
	if t == nil {
		if len(a.threads) >= maxActive {
			clear(a.threads)
			a.unsure = true
		}
		if a.threads == nil {
			a.threads = map[int]*activeThread{}
		}
		t = &activeThread{}
		a.threads[e.TID] = t
	}
	t.pid = e.PID
	if e.Kind == sample.ThreadBegan {
		t.job = e.Job
		if e.Creator != 0 && e.TID == e.PID {
			a.fork(e.Creator)
		}
	}
	t.running = e.Kind != sample.ThreadOut
	if !t.listed {
		t.listed = true
		a.ran = append(a.ran, t)
	}
	if e.Kind == sample.ThreadOut && e.State == sample.StateDead {
		delete(a.threads, e.TID)
	}
}

// fork notes that a thread began a process.
func (a *activity) fork(creator int) {
	t := a.threads[creator]
	if t == nil {
		a.forked = true
		return
	}
	t.forked = true
	if !t.listed {
		t.listed = true
		a.ran = append(a.ran, t)
	}
}

// forget drops the threads of a job that is followed no longer: their ends are not reported.
func (a *activity) forget(job string) {
	of := func(t *activeThread) bool { return t.job == job }
	maps.DeleteFunc(a.threads, func(_ int, t *activeThread) bool { return of(t) })
	a.ran = slices.DeleteFunc(a.ran, of)
}

// EachRan calls mark for each process with a followed thread that may have run since the last call, more than once if
// several of its threads did. forked is whether that thread began processes; pid is 0 for one that is not known. It
// reports whether these are all: it is false after events were lost, and while no events come. A thread on a
// CPU that the hypervisor hides, or one that io_uring created, may be missing.
func (s *Source) EachRan(mark func(pid int, forked bool)) (all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.hasEvents() {
		return false
	}
	s.drain()
	a := &s.active
	still := a.ran[:0]
	for _, t := range a.ran {
		mark(t.pid, t.forked)
		t.forked = false
		if t.listed = t.running; t.running {
			still = append(still, t)
		}
	}
	clear(a.ran[len(still):])
	a.ran = still
	if a.forked {
		mark(0, true)
		a.forked = false
	}
	all = !a.unsure && s.lostNow() == s.lostThen
	a.unsure, s.lostThen = false, s.lostNow()
	return all
}

// EachMoved calls mark for each job whose threads have read so many bytes since the last call, by calls and from
// storage. They count when the thread leaves its CPU. It makes no system call.
func (s *Source) EachMoved(least uint64, mark func(job string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.counters == nil {
		return
	}
	for slot, j := range s.jobs {
		if j == nil {
			continue
		}
		now := atomic.LoadUint64(&s.counters.moved[slot])
		if now >= s.movedThen[slot]+least {
			mark(j.name)
		}
		s.movedThen[slot] = now
	}
}

// hasEvents reports whether events come.
func (s *Source) hasEvents() bool {
	return !s.closed && !s.ended && s.ring != nil && s.tracing.Ended() == nil
}

// lostNow returns how many events found no room since the start.
func (s *Source) lostNow() uint64 { return atomic.LoadUint64(s.counters.lost) }
