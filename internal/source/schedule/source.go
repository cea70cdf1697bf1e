//go:build linux && (amd64 || arm64)

package schedule

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/sample"
)

// Source follows the threads of jobs. Its methods may be called at the same time.
type Source struct {
	open Opener // again, after the process of a Tracing ended

	mu sync.Mutex
	mapped
	lostSeen uint64
	flushed  time.Duration // CLOCK_MONOTONIC of the newest run of flush
	ended    bool          // tracing is to be opened again
	again    Reopening[Tracing]
	closed   bool

	jobs       [MaxJobs + 1]*job // from 1
	generation uint32            // of the newest job: a thread of an older one in the same place is not followed

	active      activity
	connections changes
	lostThen    uint64              // at the last call of EachRan
	movedThen   [MaxJobs + 1]uint64 // at the last call of EachMoved

	decoder  decoder
	senders  senders
	events   []sample.ThreadEvent // of the newest Read
	held     []sample.ThreadEvent // too young for it
	until    time.Duration
	schedule sample.Schedule
}

// mapped is a Tracing and its memory.
type mapped struct {
	tracing  Tracing
	ring     *ring
	counters *counters
}

type job struct {
	name       string
	generation uint32
	known      map[int]struct{} // processes that are followed
}

// counters are in memory of the kernel.
type counters struct {
	page         []byte
	lost, summed *uint64              // events without room; when a thread last began a pause in a sum, on CLOCK_MONOTONIC
	moved        *[MaxJobs + 1]uint64 // bytes that the threads of jobs read: the struct of the kernel's program
}

// adoptAtOnce is the room of the map joining.
const adoptAtOnce = 4096

// New follows threads with a Tracer of this process. An error says what is missing. root is where the host's files are,
// "" for "/".
func New(root string) (*Source, error) { return NewFrom(Local(root)) }

// Local returns an Opener of Tracers of this process.
func Local(root string) Opener {
	return func() (Tracing, error) {
		t, err := newTracer(root, defaults)
		if err != nil {
			return nil, err // not a nil *Tracer
		}
		return t, nil
	}
}

// NewFrom follows threads with what open returns. After an error, which says what is missing, the Source follows
// none until a later attempt of Read succeeds: see Refused.
func NewFrom(open Opener) (*Source, error) {
	s := &Source{open: open}
	s.decoder.job = s.jobName
	tracing, err := open()
	if err == nil {
		err = s.begin(tracing)
	}
	if err != nil {
		s.ended = true
		s.again.Refuse(monotonic(), err)
	}
	return s, err
}

// Refused returns why no threads can be followed; nil if they can.
func (s *Source) Refused() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.again.Refused()
}

// Retry has the next Read try again what the kernel refused.
func (s *Source) Retry() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.again.Now()
}

// begin maps the memory of a Tracing. It closes it if that fails.
func (s *Source) begin(tracing Tracing) error {
	memory := tracing.Memory()
	events, err := openRing(memory.Events, memory.EventBytes)
	if err != nil {
		_ = tracing.Close()
		return err
	}
	counters, err := openCounters(memory.Counters)
	if err != nil {
		events.close()
		_ = tracing.Close()
		return err
	}
	s.mapped = mapped{tracing, events, counters}
	s.again = Reopening[Tracing]{}
	if len(tracing.Lacks()) > 0 {
		s.again.Later(monotonic(), nil)
	}
	s.lostSeen, s.lostThen, s.flushed = 0, 0, 0
	return nil
}

// end unmaps the memory and closes the Tracing.
func (m *mapped) end() error {
	if m.tracing == nil {
		return nil
	}
	m.ring.close()
	_ = unix.Munmap(m.counters.page)
	return m.tracing.Close()
}

// revive opens the Tracing again if its process has ended, or if the kernel refused it or a part of it, and follows the
// same jobs. It does not wait. It reports whether the Tracing is a new one: then events are missing. An error says why
// no events come after an end.
func (s *Source) revive() (again bool, err error) {
	if !s.ended && s.tracing.Ended() != nil {
		s.ended = true
		s.again.Now()
	}
	lacks := 0
	if !s.ended {
		if lacks = len(s.tracing.Lacks()); lacks == 0 {
			return false, nil
		}
	}
	tracing, done, failed := s.again.Next(monotonic(), s.open)
	switch {
	case done && failed == nil && (s.ended || len(tracing.Lacks()) < lacks):
	case done && failed == nil:
		return false, tracing.Close() // no better than the one that is there
	case s.ended && s.again.Refused() == nil:
		return false, errAway
	default:
		return false, nil
	}
	old := s.mapped
	if err := s.begin(tracing); err != nil {
		return false, errAway
	}
	_ = old.end() // it has nothing to lose
	s.ended, s.held, s.active.unsure = false, s.held[:0], true
	s.connections.missing, s.connections.away = true, nil
	for slot, j := range s.jobs {
		if j != nil {
			err = errors.Join(err, s.tracing.SetJob(uint32(slot), j.generation),
				s.tracing.Adopt(uint32(slot), j.generation, slices.Collect(maps.Keys(j.known))))
		}
	}
	return true, err
}

func openCounters(fd int) (*counters, error) {
	page, err := unix.Mmap(fd, 0, unix.Getpagesize(), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map the counters: %w", err)
	}
	return &counters{
		page: page, lost: (*uint64)(unsafe.Pointer(&page[0])), summed: (*uint64)(unsafe.Pointer(&page[8])),
		moved: (*[MaxJobs + 1]uint64)(unsafe.Pointer(&page[16])),
	}, nil
}

// Close detaches everything. A closed source reads nothing.
func (s *Source) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	s.again.Close()
	return s.end()
}

// Follow follows the threads of the processes pids, and all threads and processes that they create. The threads of a
// process that another job has stay with that one.
func (s *Source) Follow(name string, pids []int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return errClosed
	case s.again.Refused() != nil:
		return s.again.Refused()
	}
	if slot := s.slot(name); slot != 0 {
		return s.sync(slot, pids)
	}
	slot := slices.Index(s.jobs[1:], nil) + 1
	if slot == 0 {
		return fmt.Errorf("job %s is not followed by the scheduler: %d jobs are already", name, MaxJobs)
	}
	s.generation++
	if s.generation == 0 {
		s.generation = 1
	}
	if err := s.tracing.SetJob(uint32(slot), s.generation); err != nil {
		return failed("following job "+name, err)
	}
	s.jobs[slot] = &job{name: name, generation: s.generation, known: map[int]struct{}{}}
	s.movedThen[slot] = atomic.LoadUint64(&s.counters.moved[slot])
	return s.sync(slot, pids)
}

// Sync follows processes that joined the job without a parent in it. pids are all processes of the job. It costs little
// if all of them are known.
func (s *Source) Sync(name string, pids []int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	slot := s.slot(name)
	if s.closed || slot == 0 {
		return nil
	}
	return s.sync(slot, pids)
}

func (s *Source) sync(slot int, pids []int) error {
	j := s.jobs[slot]
	s.drain() // the kernel follows new processes by itself: take note of those
	var added []int
	for _, pid := range pids {
		if _, known := j.known[pid]; !known {
			added = append(added, pid)
			j.known[pid] = struct{}{}
		}
	}
	if len(j.known) > 2*len(pids)+adoptAtOnce { // processes whose end found no room
		clear(j.known)
		for _, pid := range pids {
			j.known[pid] = struct{}{}
		}
	}
	if len(added) == 0 {
		return nil
	}
	if err := s.tracing.Adopt(uint32(slot), j.generation, added); err != nil {
		return failed("following the processes of job "+j.name, err)
	}
	return nil
}

// flushSums has the kernel report the sums of threads that have paused for longPause, if there can be one.
func (s *Source) flushSums() {
	summed := time.Duration(atomic.LoadUint64(s.counters.summed))
	if summed == 0 || summed < s.flushed-longPause {
		return
	}
	now := monotonic()            // a system call: not in each reading
	if s.tracing.Flush() == nil { // else at the next reading
		s.flushed = now
	}
}

// Unfollow follows the threads of a job no longer. Other jobs take over those of processes that they share with it.
// If that fails, the processes count as not followed.
func (s *Source) Unfollow(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	slot := s.slot(name)
	if s.closed || slot == 0 {
		return
	}
	s.drain() // the processes that it has now
	left := s.jobs[slot]
	_ = s.tracing.SetJob(uint32(slot), 0) // an array accepts every value
	s.drain()                             // what came meanwhile: no later event ends it
	s.jobs[slot] = nil
	s.active.forget(name)
	for slot, j := range s.jobs {
		if j == nil {
			continue
		}
		var shared []int
		for pid := range j.known {
			if _, both := left.known[pid]; both {
				shared = append(shared, pid)
			}
		}
		if len(shared) == 0 || s.tracing.Adopt(uint32(slot), j.generation, shared) == nil {
			continue
		}
		for _, pid := range shared {
			delete(j.known, pid) // the next Sync tries it again
		}
	}
}

func (s *Source) slot(name string) int {
	for i, j := range s.jobs {
		if j != nil && j.name == name {
			return i
		}
	}
	return 0
}

func (s *Source) jobName(slot, generation uint32) (string, bool) {
	if slot > MaxJobs || s.jobs[slot] == nil || s.jobs[slot].generation != generation {
		return "", false
	}
	return s.jobs[slot].name, true
}

// Read sets Schedule and At. The next Read reuses the memory of Schedule: copy what you keep.
func (s *Source) Read(into *sample.Sample) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	into.At = sample.Now()
	if s.closed {
		return errClosed
	}
	again, err := s.revive()
	if err != nil && !again || s.ended {
		return err
	}
	s.flushSums()
	s.events = append(s.events[:0], s.held...)
	s.held = s.held[:0]
	until := into.At.Mono - ringDelay
	if !s.drainInto(&s.events) {
		until = s.until
		if n := len(s.events); n > 0 {
			until = max(until, s.events[n-1].At-ringDelay)
		}
	}
	sortEvents(s.events)
	end := len(s.events)
	for end > 0 && s.events[end-1].At > until {
		end--
	}
	s.held = append(s.held, s.events[end:]...)
	s.until = until
	lost := s.lostNow()
	s.schedule = sample.Schedule{Until: until, Events: s.events[:end], Lost: lost - s.lostSeen}
	s.lostSeen = lost
	if again {
		s.schedule.Lost++ // what happened meanwhile
	}
	into.Schedule = &s.schedule
	return err
}

// drain takes events from the kernel, which the next Read returns.
func (s *Source) drain() { s.drainInto(&s.held) }

// drainInto adds at most maxEvents and reports whether the kernel has no more.
func (s *Source) drainInto(events *[]sample.ThreadEvent) bool {
	return s.ring.drain(max(0, maxEvents-len(*events)), func(record []byte) {
		if change, is := s.decoder.connection(record); is {
			s.connections.add(&change)
			return
		}
		before := len(*events)
		*events = s.decoder.decode(record, *events)
		for i := before; i < len(*events); i++ {
			s.note(&(*events)[i])
			s.active.learn(&(*events)[i])
		}
		if n := len(*events); n > before {
			if named, is := s.senders.name(&(*events)[n-1], s.follows); is {
				*events = append(*events, named)
			}
		}
	})
}

// follows reports whether a process is one of a job.
func (s *Source) follows(pid int) bool {
	for _, j := range s.jobs {
		if j != nil {
			if _, known := j.known[pid]; known {
				return true
			}
		}
	}
	return false
}

// note keeps the processes of jobs, so that Sync knows those that were created by followed ones.
func (s *Source) note(e *sample.ThreadEvent) {
	if e.TID != e.PID {
		return
	}
	switch {
	case e.Kind == sample.ThreadBegan:
		if slot := s.slot(e.Job); slot != 0 {
			s.jobs[slot].known[e.PID] = struct{}{}
		}
	case e.Kind == sample.ThreadOut && e.State == sample.StateDead:
		for _, j := range s.jobs {
			if j != nil {
				delete(j.known, e.PID)
			}
		}
	}
}

func monotonic() time.Duration {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) // it cannot fail for this clock
	return time.Duration(now.Nano())
}

// sortEvents sorts by time and keeps the order of events of the same time. The CPUs' events are almost in order: each
// moves by a few places.
func sortEvents(events []sample.ThreadEvent) {
	moves := 16 * len(events)
	for i := 1; i < len(events); i++ {
		if events[i].At >= events[i-1].At {
			continue
		}
		e, to := events[i], i
		for ; to > 0 && events[to-1].At > e.At && moves > 0; to-- {
			events[to] = events[to-1]
			moves--
		}
		events[to] = e
		if moves == 0 {
			slices.SortStableFunc(events, func(a, b sample.ThreadEvent) int { return int(a.At - b.At) })
			return
		}
	}
}
