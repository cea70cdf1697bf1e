//go:build linux && (amd64 || arm64)

package opens

import (
	"encoding/binary"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/schedule"
)

const (
	maxEvents    = 1 << 14 // of all jobs, that wait for Take: about 3 MB
	maxJobEvents = 1 << 12
	deleted      = " (deleted)" // follows the path of a file that has no name any more
)

// Source reads what the kernel reports. Its methods may be called at the same time.
type Source struct {
	open func() (Tracing, error) // again, after the process of a Tracing ended
	jobs Jobs

	mu       sync.Mutex
	tracing  Tracing // nil while none is there
	ring     *schedule.Ring
	counters []byte
	again    schedule.Reopening[Tracing]
	closed   bool
	lost     uint64 // events without room, to the extent that they are known
	slots    [schedule.MaxJobs + 1]slot
	waiting  int // events of all slots
}

// Jobs names the jobs of the scheduler's slots. It is implemented by schedule.Source.
type Jobs interface {
	Tracing() schedule.Tracing
	JobIn(slot int) (name string, generation uint32)
}

// slot is what is known of the job in a slot of the scheduler's.
type slot struct {
	job        string
	generation uint32 // 0 for none
	taken      bool   // Take was called
	missing    bool   // something is missing since then
	left       uint64 // events above its budget, to the extent that they are known
	model      bool   // it opened a model's file since the last call of EachOpened
	events     []Event
}

// New reports what open makes the kernel report of jobs.
func New(open Opener, jobs Jobs, o Options) (*Source, error) {
	s := &Source{jobs: jobs, open: func() (Tracing, error) { return open(jobs.Tracing(), o) }}
	tracing, err := s.open()
	if err != nil {
		return nil, err
	}
	if err := s.begin(tracing); err != nil {
		return nil, err
	}
	return s, nil
}

// begin maps the memory of a Tracing. It closes it if that fails.
func (s *Source) begin(tracing Tracing) error {
	m := tracing.Memory()
	ring, err := schedule.OpenRing(m.Events, m.EventBytes)
	if err != nil {
		_ = tracing.Close()
		return err
	}
	counters, err := unix.Mmap(m.Counters, 0, unix.Getpagesize(), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		ring.Close()
		_ = tracing.Close()
		return fmt.Errorf("map the counters of opens: %w", err)
	}
	s.tracing, s.ring, s.counters, s.lost = tracing, ring, counters, 0
	for i := range s.slots {
		s.slots[i].missing, s.slots[i].left = true, 0
	}
	return nil
}

// end unmaps and closes.
func (s *Source) end() error {
	if s.tracing == nil {
		return nil
	}
	s.ring.Close()
	_ = unix.Munmap(s.counters)
	err := s.tracing.Close()
	s.tracing, s.ring, s.counters = nil, nil, nil
	return err
}

// Close ends the reports.
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

// revive opens a Tracing again if the last one has ended. It reports whether there is one.
func (s *Source) revive() bool {
	if s.closed {
		return false
	}
	if s.tracing != nil {
		if s.tracing.Ended() == nil {
			return true
		}
		_ = s.end() // it has nothing to lose
	}
	tracing, ok := s.again.Next(sample.Now().Mono, s.open)
	return ok && s.begin(tracing) == nil
}

// EachOpened calls mark for each job that opened a file of a model since the last call.
func (s *Source) EachOpened(mark func(job string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.revive() {
		return
	}
	s.drain()
	for i := range s.slots {
		if of := &s.slots[i]; of.model {
			of.model = false
			mark(of.job)
		}
	}
}

// Take calls visit for each event of a job up to a moment since the last call, in order. It reports whether these are
// all, since that call: not in the first one, and not if events were lost or left out. The event is valid until visit
// returns.
func (s *Source) Take(job string, until time.Duration, visit func(*Event)) (all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.revive() {
		return false
	}
	s.drain()
	of := s.slotOf(job)
	if of == nil {
		return false
	}
	n := 0
	for n < len(of.events) && of.events[n].At <= until {
		visit(&of.events[n])
		n++
	}
	s.waiting -= n
	of.events = append(of.events[:0], of.events[n:]...)
	if cap(of.events) > maxJobEvents/8 && len(of.events) == 0 {
		of.events = nil // a storm is over
	}
	all = of.taken && !of.missing
	of.taken, of.missing = true, false
	return all
}

// slotOf returns the slot of a job; nil if it is not followed by the scheduler.
func (s *Source) slotOf(job string) *slot {
	for i := 1; i < len(s.slots); i++ {
		if of := s.at(uint32(i)); of != nil && of.job == job {
			return of
		}
	}
	return nil
}

// at returns a slot with the job that it has now; nil if it has none.
func (s *Source) at(i uint32) *slot {
	if i == 0 || int(i) >= len(s.slots) {
		return nil
	}
	of := &s.slots[i]
	name, generation := s.jobs.JobIn(int(i))
	if generation != of.generation {
		s.waiting -= len(of.events)
		*of = slot{job: name, generation: generation, left: s.word(int(i) + 1)} // nothing is known of what was before
	}
	if generation == 0 {
		return nil
	}
	return of
}

// drain takes events from the kernel, and notes what is missing.
func (s *Source) drain() {
	s.ring.Drain(s.add)
	lost := s.word(0)
	for i := range s.slots {
		of := &s.slots[i]
		if of.generation == 0 {
			continue
		}
		left := s.word(i + 1)
		of.missing = of.missing || lost != s.lost || left != of.left
		of.left = left
	}
	s.lost = lost
}

// word returns a number of the counters.
func (s *Source) word(i int) uint64 {
	return atomic.LoadUint64((*uint64)(unsafe.Pointer(&s.counters[8*i])))
}

// Kinds of records in bpf/opens.bpf.c.
const (
	opened = 1
	closed = 2
)

// add takes a record of the kernel: struct event.
func (s *Source) add(r []byte) {
	if len(r) < headBytes {
		return
	}
	order := binary.NativeEndian
	of := s.at(order.Uint32(r[36:]))
	if of == nil || of.generation != order.Uint32(r[40:]) {
		return
	}
	kind := r[48]
	e := Event{
		At:  sample.OnMonotonic(time.Duration(order.Uint64(r))),
		PID: int(order.Uint32(r[44:])), Inode: order.Uint64(r[8:]), Size: min(int64(order.Uint64(r[16:])), 1<<50),
		Close: kind == closed, Write: r[49] != 0, Model: r[50] != 0,
	}
	device := order.Uint32(r[32:])
	e.Device = unix.Mkdev(device>>20, device&(1<<20-1))
	switch {
	case kind == closed:
		e.Position = int64(min(order.Uint64(r[24:]), 1<<50))
	case kind == opened && len(r) > headBytes:
		e.Path = strings.TrimSuffix(strings.TrimRight(string(r[headBytes:]), "\x00"), deleted)
		of.model = of.model || e.Model
	default:
		return
	}
	if len(of.events) >= maxJobEvents || s.waiting >= maxEvents {
		of.missing = true
		return
	}
	s.waiting++
	at := len(of.events) // the CPUs' events are almost in order
	for at > 0 && of.events[at-1].At > e.At {
		at--
	}
	of.events = append(of.events, Event{})
	copy(of.events[at+1:], of.events[at:])
	of.events[at] = e
}
