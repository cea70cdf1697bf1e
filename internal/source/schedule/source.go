//go:build linux && (amd64 || arm64)

package schedule

import (
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/sample"
)

// Source follows the threads of jobs. Its methods may be called at the same time.
type Source struct {
	mu       sync.Mutex
	programs bpfObjects
	links    []io.Closer
	adopt    *link.Iter
	flush    *link.Iter
	ring     *ring
	counters *counters
	lostSeen uint64
	flushed  time.Duration // CLOCK_MONOTONIC of the newest run of flush
	closed   bool

	jobs       [MaxJobs + 1]*job // from 1
	generation uint32            // of the newest job: a thread of an older one in the same place is not followed

	active   activity
	lostThen uint64 // at the last call of EachRan

	decoder  decoder
	events   []sample.ThreadEvent // of the newest Read
	held     []sample.ThreadEvent // too young for it
	until    time.Duration
	schedule sample.Schedule
}

type job struct {
	name       string
	generation uint32
	known      map[int]struct{} // processes that are followed
}

// counters are in memory of the kernel.
type counters struct {
	page         []byte
	lost, summed *uint64 // events without room; when a thread last began a pause in a sum, on CLOCK_MONOTONIC
}

// member is the value of the map joining.
type member struct{ Slot, Generation uint32 }

// kernelJob is the value of the map jobs.
type kernelJob struct {
	Generation, Over uint32
	Window, Count    uint64
}

// adoptAtOnce is the room of the map joining.
const adoptAtOnce = 4096

// New loads the programs and attaches them. An error says what is missing. root is where the host's files are, "" for
// "/".
func New(root string) (*Source, error) { return open(root, defaults) }

// NewFor is New for threads of an owner alone. What is not or no longer of the owner is not followed, whatever its
// parent is: the kernel compares the ids at each event. It reports the end of such a thread.
func NewFor(root string, owner Owner) (*Source, error) {
	o := defaults
	o.owner = &owner
	return open(root, o)
}

func open(root string, o options) (*Source, error) {
	if err := missing(root); err != nil {
		return nil, err
	}
	s := &Source{}
	s.decoder.job = s.jobName
	if err := s.attach(o); err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Source) attach(o options) (err error) {
	if err := load(&s.programs, o); err != nil {
		return err
	}
	if s.ring, err = openRing(s.programs.Events.FD(), o.ringBytes); err != nil {
		return err
	}
	if s.counters, err = openCounters(s.programs.Counters.FD()); err != nil {
		return err
	}
	if s.adopt, err = link.AttachIter(link.IterOptions{Program: s.programs.Adopt}); err != nil {
		return fmt.Errorf("attach the iterator over threads: %w", err)
	}
	if s.flush, err = link.AttachIter(link.IterOptions{Program: s.programs.Flush}); err != nil {
		return fmt.Errorf("attach the iterator over threads: %w", err)
	}
	for _, p := range s.programs.traced() {
		l, err := link.AttachTracing(link.TracingOptions{Program: p, AttachType: ebpf.AttachTraceRawTp})
		if err != nil {
			return fmt.Errorf("attach to the kernel's tracepoints: %w", err)
		}
		s.links = append(s.links, l)
	}
	return nil
}

func openCounters(fd int) (*counters, error) {
	page, err := unix.Mmap(fd, 0, unix.Getpagesize(), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map the counters: %w", err)
	}
	return &counters{
		page: page, lost: (*uint64)(unsafe.Pointer(&page[0])), summed: (*uint64)(unsafe.Pointer(&page[8])),
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
	for _, l := range s.links {
		_ = l.Close() // closing a descriptor detaches
	}
	for _, iterator := range []*link.Iter{s.adopt, s.flush} {
		if iterator != nil {
			_ = iterator.Close()
		}
	}
	if s.ring != nil {
		s.ring.close()
	}
	if s.counters != nil {
		_ = unix.Munmap(s.counters.page)
	}
	return s.programs.Close()
}

// Follow follows the threads of the processes pids, and all threads and processes that they create. The threads of a
// process that another job has stay with that one.
func (s *Source) Follow(name string, pids []int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
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
	err := s.programs.Jobs.Put(uint32(slot), kernelJob{Generation: s.generation})
	if err != nil {
		return fmt.Errorf("follow job %s: %w", name, err)
	}
	s.jobs[slot] = &job{name: name, generation: s.generation, known: map[int]struct{}{}}
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
	for some := range slices.Chunk(added, adoptAtOnce) {
		if err := s.join(member{uint32(slot), j.generation}, some); err != nil {
			return fmt.Errorf("follow the processes of job %s: %w", j.name, err)
		}
	}
	return nil
}

// join has the kernel adopt all threads of processes. A thread that is created meanwhile may be passed over in the
// first round, if its creator is not followed yet.
func (s *Source) join(m member, pids []int) error {
	for _, pid := range pids {
		if err := s.programs.Joining.Put(uint32(pid), m); err != nil {
			return err
		}
	}
	defer func() {
		for _, pid := range pids {
			_ = s.programs.Joining.Delete(uint32(pid)) // it is there
		}
	}()
	for range 2 {
		if err := iterate(s.adopt); err != nil {
			return err
		}
	}
	return nil
}

// iterate runs a program for each thread of the machine.
func iterate(over *link.Iter) error {
	threads, err := over.Open()
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, threads)
	_ = threads.Close()
	return err
}

// flushSums has the kernel report the sums of threads that have paused for longPause, if there can be one.
func (s *Source) flushSums() {
	summed := time.Duration(atomic.LoadUint64(s.counters.summed))
	if summed == 0 || summed < s.flushed-longPause {
		return
	}
	now := monotonic()           // a system call: not in each reading
	if iterate(s.flush) == nil { // else at the next reading
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
	_ = s.programs.Jobs.Put(uint32(slot), kernelJob{}) // an array accepts every value
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
		for some := range slices.Chunk(shared, adoptAtOnce) {
			if s.join(member{uint32(slot), j.generation}, some) != nil {
				for _, pid := range some {
					delete(j.known, pid) // the next Sync tries it again
				}
			}
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
	into.Schedule = &s.schedule
	return nil
}

// drain takes events from the kernel, which the next Read returns.
func (s *Source) drain() { s.drainInto(&s.held) }

// drainInto adds at most maxEvents and reports whether the kernel has no more.
func (s *Source) drainInto(events *[]sample.ThreadEvent) bool {
	return s.ring.drain(max(0, maxEvents-len(*events)), func(record []byte) {
		before := len(*events)
		*events = s.decoder.decode(record, *events)
		for i := before; i < len(*events); i++ {
			s.note(&(*events)[i])
			s.active.learn(&(*events)[i])
		}
	})
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
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) // cannot fail for this clock
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
