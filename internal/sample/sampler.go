package sample

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Source reads one kind of device.
type Source interface {
	// Read takes one reading into s, which is empty but for s.Edge, and sets s.At to the moment that the numbers belong to.
	// On an error s keeps whatever could be read: a partial reading is still a reading. Read is never called
	// twice at once for one source, so it may keep buffers and open files.
	Read(s *Sample) error
}

// Named is a source with the name under which its failures are told.
type Named struct {
	Name   string
	Source Source
}

// Sink takes a reading over. It must copy what it keeps. err is why the reading is incomplete, or nil.
type Sink func(source string, s *Sample, err error)

// Sampler takes a reading of every source at each tick, one source after another on one goroutine, and can take an
// extra one in between. It is safe for concurrent use.
type Sampler struct {
	interval time.Duration
	beat     func(context.Context, time.Duration) beat
	late     atomic.Uint64

	mu      sync.Mutex // held while sources are read: a reading is cheap, and two at once would only queue in the kernel
	sources []slot
}

type slot struct {
	Named
	sample Sample
}

// NewSampler prepares a sampler; Run starts it. interval is the time between two ticks.
func NewSampler(interval time.Duration, sources []Named) *Sampler {
	s := &Sampler{interval: interval, beat: newBeat, sources: make([]slot, len(sources))}
	for i, source := range sources {
		s.sources[i].Named = source
	}
	return s
}

// Run reads at once and then at every tick until ctx ends. A tick that comes more than a whole interval late is
// counted, never made up for: catching up would only load a machine that is already too busy.
func (s *Sampler) Run(ctx context.Context, sink Sink, tick func()) {
	beat := s.beat(ctx, s.interval)
	defer beat.stop()
	last := Now().Mono
	for {
		s.read(sink, false)
		tick()
		if !beat.wait() {
			return
		}
		now := Now().Mono
		if now-last > 2*s.interval {
			s.late.Add(1)
		}
		last = now
	}
}

// Read takes one reading of every source now, with everything that each has, and hands each to sink, on the caller's
// goroutine. It gives the moment at which the reading began, which is later than the call where another one was under
// way.
func (s *Sampler) Read(sink Sink) Stamp { return s.read(sink, true) }

func (s *Sampler) read(sink Sink, edge bool) Stamp {
	s.mu.Lock()
	defer s.mu.Unlock()
	began := Now()
	for i := range s.sources {
		slot := &s.sources[i]
		slot.sample.Reset()
		slot.sample.Edge = edge
		err := slot.Source.Read(&slot.sample)
		sink(slot.Name, &slot.sample, err)
	}
	return began
}

// Late is how many ticks came more than one interval after their time.
func (s *Sampler) Late() uint64 { return s.late.Load() }
