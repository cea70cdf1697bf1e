// Package gpu reads NVIDIA GPUs through NVML, the library that comes with their driver.
//
// It is a stream with a time axis of its own. The driver keeps samples of utilisation for some seconds, so it is asked
// once a second and loses no burst; what it says becomes rows on a grid, each for a moment that the samples of every
// working GPU reach. Rows are never more than mostBehind late: a GPU whose driver says nothing for that long goes on
// without growth, and what it says later is made up for (see mostDebt).
//
// Once a second it is also asked for details, each at its own cadence (plans), all fields in one call, and for XID errors.
// What a GPU does not have is not asked for again. Every call is timed (meter). No call blocks for longer than the driver
// takes to answer, and none measures for a while of its own.
//
// A call into the driver can hang for ever when a GPU falls off the bus. Every call is therefore made on a thread that
// can be abandoned, and the GPU is told as hung until the call has returned.
package gpu

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// Options says which library is read and how fine the rows are.
type Options struct {
	Library  string        // libnvidia-ml.so.1 where the loader does not find it; "" for the loader's choice
	Interval time.Duration // between two rows; 0 means 100 ms
}

var (
	// ErrNotBuilt says that this binary was built without cgo, which NVML needs.
	ErrNotBuilt = errors.New("built without NVML: install a build with cgo to read NVIDIA GPUs")
	// ErrNoDriver says that this machine has no NVIDIA driver: its library is not there.
	ErrNoDriver = errors.New("no NVIDIA driver: its library libnvidia-ml.so.1 is not there")
)

// sourceName is the name that a sink is given.
const sourceName = "gpu"

// Source is a sample.Stream of all NVIDIA GPUs of this machine, and of their MIG slices. On a machine without a driver,
// or without a GPU, it says so once, gives no rows and looks again now and then.
type Source struct {
	driver   driver
	interval time.Duration

	mu    sync.Mutex
	ready bool          // a round may have something to tell
	round chan struct{} // closed when the round that begins next has ended; nil when nobody waits for it
	wake  chan struct{} // of one element: somebody waits for the next round
}

var _ sample.Stream = (*Source)(nil)

// New prepares a source and touches no driver. It fails with ErrNotBuilt alone.
func New(o Options) (*Source, error) {
	d, err := newDriver(o.Library)
	if err != nil {
		return nil, err
	}
	return newSource(d, o.Interval), nil
}

func newSource(d driver, interval time.Duration) *Source {
	if interval <= 0 {
		interval = 100 * time.Millisecond
	}
	return &Source{driver: d, interval: interval, wake: make(chan struct{}, 1)}
}

// Run implements sample.Stream. The error beside a row says what could not be read, and what to do about it; the same
// is told once a minute at most. A reading without GPUs only carries an error.
func (s *Source) Run(ctx context.Context, sink sample.Sink) {
	s.setReady(true)
	r := newRun(s.driver, s.interval, sink)
	for ctx.Err() == nil {
		waiting := s.begin()
		r.poll(ctx, waiting != nil)
		s.setReady(r.anyReadable())
		if waiting != nil {
			close(waiting)
		}
		s.pause(ctx, r)
	}
	s.setReady(false)
	r.end()
}

// pause waits until the next round is due or asked for.
func (s *Source) pause(ctx context.Context, r *run) {
	due := time.NewTimer(r.next - sample.Now().Mono)
	defer due.Stop()
	select {
	case <-ctx.Done():
	case <-due.C:
	case <-s.wake:
		minRoundInterval := time.NewTimer(r.began + minRoundInterval - sample.Now().Mono)
		defer minRoundInterval.Stop()
		select {
		case <-ctx.Done():
		case <-minRoundInterval.C:
		}
	}
}

// CatchUp implements sample.Stream. It waits for a round that begins after the call, at most 50 ms later while the
// driver answers; and for nothing while no GPU can be read.
func (s *Source) CatchUp(ctx context.Context) {
	s.mu.Lock()
	if !s.ready {
		s.mu.Unlock()
		return
	}
	if s.round == nil {
		s.round = make(chan struct{})
	}
	round := s.round
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
	select {
	case <-round:
	case <-ctx.Done():
	}
}

// begin gives what is to be closed after this round, or nil.
func (s *Source) begin() chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	round := s.round
	s.round = nil
	return round
}

// setReady sends those home who wait for a round that would tell nothing.
func (s *Source) setReady(ready bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready = ready
	if !ready && s.round != nil {
		close(s.round)
		s.round = nil
	}
}
