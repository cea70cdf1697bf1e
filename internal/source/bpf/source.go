//go:build linux && (amd64 || arm64)

package bpf

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/sample"
)

// Source follows the threads of jobs, and counts how long disks take: see Latencies. Its methods may be called at the
// same time.
type Source struct {
	open func() (Tracing, error) // again, after the process of a Tracing ended
	want Wanted

	mu sync.Mutex
	mapped
	failed   error // of the newest attempt, while nothing was opened before
	lostSeen uint64
	flushed  time.Duration // CLOCK_MONOTONIC of the newest run of flush
	ended    bool          // tracing is to be opened again
	fresh    bool          // another Tracing has begun since the last Read
	again    reopening
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

	latencies Latencies
}

// mapped is a Tracing and its memory. Without a Tracing, all is zero.
type mapped struct {
	tracing   Tracing
	ring      *ring     // nil if threads are not followed
	counters  *counters // nil, too
	cells     []byte    // nil if disks are not counted
	directory []byte    // nil, too
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

var (
	errClosed = errors.New("the source of the kernel's tracepoints is closed")
	errAway   = errors.New("threads and disks are not followed: the helper that does has ended and is started again")
)

// adoptAtOnce is the room of the map joining.
const adoptAtOnce = 4096

// New opens all with a Tracer of this process. An error says why no threads are followed. root is where the host's
// files are, "" for "/".
func New(root string) (*Source, error) {
	s := NewFrom(Local(root), Wanted{Threads: true, Disks: true}, root)
	return s, s.Lacks().Of(Threads)
}

// NewFrom opens a Tracing of what is wanted. What the kernel refuses is there after a later attempt of Read or of
// Latencies that succeeds: see Lacks.
func NewFrom(open Opener, want Wanted, root string) *Source {
	s := &Source{open: func() (Tracing, error) { return open(want) }, want: want}
	s.decoder.job = s.jobName
	s.latencies = Latencies{source: s, sys: filepath.Join("/", root, "sys/dev/block")}
	tracing, err := s.open()
	if err == nil {
		err = s.begin(tracing)
	}
	if err != nil {
		s.ended, s.failed = true, err
		s.again.later(monotonic(), err)
	}
	return s
}

// Lacks lists the wanted parts that the kernel refuses now.
func (s *Source) Lacks() Refusals {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lacks()
}

func (s *Source) lacks() Refusals {
	if s.tracing == nil {
		return everything(s.want, fmt.Errorf("has failed: %w", s.failed))
	}
	return s.tracing.Lacks()
}

// Refused returns why no threads can be followed; nil if they can.
func (s *Source) Refused() error { return s.Lacks().Of(Threads) }

// Retry has the next Read try again what the kernel refused.
func (s *Source) Retry() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.again.now()
}

// begin maps the memory of a Tracing. It closes it if that fails.
func (s *Source) begin(tracing Tracing) (err error) {
	memory := tracing.Memory()
	m := mapped{tracing: tracing}
	defer func() {
		if err != nil {
			_ = m.end() // it has nothing to lose
		}
	}()
	if memory.EventBytes > 0 {
		if m.ring, err = openRing(memory.Events, memory.EventBytes); err != nil {
			return err
		}
		if m.counters, err = openCounters(memory.Counters); err != nil {
			return err
		}
	}
	if memory.Disks {
		if m.cells, err = mapWhole(memory.Cells, cells*shards*cellBytes); err != nil {
			return err
		}
		if m.directory, err = mapWhole(memory.Directory, directoryBytes); err != nil {
			return err
		}
	}
	s.mapped, s.failed, s.again = m, nil, reopening{}
	if len(tracing.Lacks()) > 0 {
		s.again.later(monotonic(), nil)
	}
	s.lostSeen, s.lostThen, s.flushed = 0, 0, 0
	s.latencies.began, s.latencies.known = sample.Now(), nil
	return nil
}

// end unmaps the memory and closes the Tracing.
func (m *mapped) end() error {
	if m.tracing == nil {
		return nil
	}
	if m.ring != nil {
		m.ring.close()
	}
	if m.counters != nil {
		_ = unix.Munmap(m.counters.page)
	}
	for _, text := range [][]byte{m.cells, m.directory} {
		if text != nil {
			_ = unix.Munmap(text)
		}
	}
	return m.tracing.Close()
}

// revive opens the Tracing again if its process has ended, or if the kernel refused a part of it. It does not wait. An
// error says why nothing comes after an end.
func (s *Source) revive() error {
	if !s.ended && s.tracing.Ended() != nil {
		s.ended = true
		s.again.now()
	}
	if !s.ended && len(s.tracing.Lacks()) == 0 {
		return nil
	}
	tracing, done, err := s.again.next(monotonic(), s.open)
	if done && err == nil {
		if !s.ended && tracing.Lacks().size() >= s.tracing.Lacks().size() {
			return tracing.Close() // no better than the one that is there
		}
		old := s.mapped
		if err = s.begin(tracing); err == nil {
			_ = old.end() // it has nothing to lose
			s.ended, s.fresh, s.held, s.active.unsure = false, true, s.held[:0], true
			s.connections.missing, s.connections.away = true, nil
			return nil
		}
	}
	switch {
	case s.tracing == nil: // Lacks has the cause
		s.failed = cmp.Or(err, s.failed)
		return nil
	case s.ended:
		return errAway
	}
	return nil
}

// followAgain has a new Tracing follow the jobs of the one before.
func (s *Source) followAgain() (err error) {
	for slot, j := range s.jobs {
		if j != nil {
			err = errors.Join(err, s.tracing.SetJob(uint32(slot), j.generation),
				s.tracing.Adopt(uint32(slot), j.generation, slices.Collect(maps.Keys(j.known))))
		}
	}
	return err
}

// mapWhole maps a map of the kernel to read it.
func mapWhole(fd, size int) ([]byte, error) {
	page := unix.Getpagesize()
	text, err := unix.Mmap(fd, 0, (size+page-1)/page*page, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map what the programs count: %w", err)
	}
	return text, nil
}

func openCounters(fd int) (*counters, error) {
	page, err := mapWhole(fd, unix.Getpagesize())
	if err != nil {
		return nil, err
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
	s.again.close()
	return s.end()
}

// Follow follows the threads of the processes pids, and all threads and processes that they create. The threads of a
// process that another job has stay with that one.
func (s *Source) Follow(name string, pids []int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	if refused := s.lacks().Of(Threads); refused != nil {
		return refused
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
	if err := s.revive(); err != nil {
		return err
	}
	if s.ring == nil {
		if s.generation > 0 { // threads were followed before
			return s.lacks().Of(Threads)
		}
		return nil
	}
	var err error
	if s.fresh {
		err = s.followAgain()
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
	slices.SortStableFunc(s.events, func(a, b sample.ThreadEvent) int { return cmp.Compare(a.At, b.At) })
	end := len(s.events)
	for end > 0 && s.events[end-1].At > until {
		end--
	}
	s.held = append(s.held, s.events[end:]...)
	s.until = until
	lost := s.lostNow()
	s.schedule = sample.Schedule{Until: until, Events: s.events[:end], Lost: lost - s.lostSeen}
	s.lostSeen = lost
	if s.fresh {
		s.schedule.Lost++ // what happened meanwhile
		s.fresh = false
	}
	into.Schedule = &s.schedule
	return err
}

// drain takes events from the kernel, which the next Read returns.
func (s *Source) drain() { s.drainInto(&s.held) }

// drainInto adds at most maxEvents and reports whether the kernel has no more.
func (s *Source) drainInto(events *[]sample.ThreadEvent) bool {
	if s.ring == nil {
		return true
	}
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
