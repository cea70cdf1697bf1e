package sample

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Source reads one kind of device.
type Source interface {
	// Read takes one reading into s, which is empty except for s.Edge, and sets s.At to the time of the numbers. On an
	// error s keeps what could be read. Calls of one source never overlap, so that it may keep buffers and open files.
	Read(s *Sample) error
}

// Named is a source with its name in errors and recordings.
type Named struct {
	Name   string
	Source Source
}

// Sink receives a reading and must copy what it keeps. err is why the reading is incomplete, or nil.
type Sink func(source string, s *Sample, err error)

// Sampler reads every source at each tick, one after another on one goroutine. Read takes an extra reading in between.
// It is safe for concurrent use.
type Sampler struct {
	interval time.Duration
	late     atomic.Uint64
	rounds   atomic.Uint64
	last     atomic.Int64 // see Last

	mu      sync.Mutex // held while sources are read: concurrent readings would only queue in the kernel
	sources []slot
}

type slot struct {
	Named
	sample Sample
	pause  time.Duration // after its last panic; 0 after a reading
	resume time.Duration // monotonic: not read before, if there is a pause
}

// NewSampler returns a sampler for Run. interval is the time between two ticks.
func NewSampler(interval time.Duration, sources []Named) *Sampler {
	s := &Sampler{interval: interval, sources: make([]slot, len(sources))}
	for i, source := range sources {
		s.sources[i].Named = source
	}
	return s
}

// Run reads at once and then at every tick until ctx ends. A tick that is late by more than an interval is counted in
// Late and not repeated: that would add load to a busy machine.
func (s *Sampler) Run(ctx context.Context, sink Sink, tick func()) {
	beat := time.NewTicker(s.interval)
	defer beat.Stop()
	last := Now().Mono
	s.last.Store(int64(last))
	for {
		s.read(sink, false)
		tick()
		s.rounds.Add(1)
		s.last.Store(int64(Now().Mono))
		select {
		case <-ctx.Done():
		case <-beat.C:
		}
		if ctx.Err() != nil { // if both were ready, select may have chosen the tick
			return
		}
		now := Now().Mono
		if now-last > 2*s.interval {
			s.late.Add(1)
		}
		last = now
	}
}

// Read takes a complete reading of every source now and passes each to sink, on the caller's goroutine. It returns the
// time when the reading began, which is later than the call if it had to wait for another reading.
func (s *Sampler) Read(sink Sink) Stamp { return s.read(sink, true) }

func (s *Sampler) read(sink Sink, edge bool) Stamp {
	s.mu.Lock()
	defer s.mu.Unlock()
	began := Now()
	for i := range s.sources {
		if slot := &s.sources[i]; slot.pause == 0 || began.Mono >= slot.resume {
			slot.read(sink, edge, began)
		}
	}
	return began
}

// read takes one reading. A panic costs this source its readings for a while, and no other one.
func (s *slot) read(sink Sink, edge bool, now Stamp) {
	err := Protect(func() {
		s.sample.Reset()
		s.sample.Edge = edge
		sink(s.Name, &s.sample, s.Source.Read(&s.sample))
	})
	if err == nil {
		s.pause = 0
		return
	}
	s.pause = pause(s.pause)
	s.resume = now.Mono + s.pause
	s.sample.Reset()
	s.sample.At = now
	_ = Protect(func() { sink(s.Name, &s.sample, err) })
}

// Rounds returns the number of complete rounds of Run. It does not grow while a source hangs.
func (s *Sampler) Rounds() uint64 { return s.rounds.Load() }

// Last returns when the last round of Run was complete, or when it began, as Stamp.Mono; 0 before that.
func (s *Sampler) Last() time.Duration { return time.Duration(s.last.Load()) }

// Late returns the number of ticks that were late by more than one interval.
func (s *Sampler) Late() uint64 { return s.late.Load() }
