// Package gpu reads NVIDIA GPUs through NVML, the library of the NVIDIA driver.
//
// The driver buffers utilization samples for some seconds, so each GPU is read once a second without losing a burst.
// The samples are resampled to a grid of rows. A row is complete when the samples of every working GPU reach its time.
// How late the driver is, is learned from the timestamps of its samples. The busy time of a GPU without samples for
// longer stands still, and catches up later (see maxBacklog).
//
// The memory of a GPU that is watched is read ten times a second, apart from rows: see WatchMemory.
//
// Once a second each GPU is also read for gauges, details and XID errors: table.go says by which call and how often.
// Field values that are due are read in one call. Queries that a GPU does not support are not repeated. Every call is
// timed. No call is used that measures for a while before it returns.
//
// A call into the driver can hang forever if a GPU falls off the bus, and so can one about all GPUs. Each GPU has calls
// of its own, one at a time, and so has the driver as a whole. A GPU is lost if it says so, and hung while its own call
// does not return; without an answer about it, it is unknown. Nothing waits for a call for longer than patience.
package gpu

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// Options are the library to load and the resolution.
type Options struct {
	Library  string        // path of libnvidia-ml.so.1; "" for the dynamic loader's choice
	Root     string        // of the machine's /proc and /sys; "" for /
	Interval time.Duration // between two rows; 0 for defaultInterval
}

var (
	// ErrNotBuilt means that this binary was built without cgo, which NVML needs.
	ErrNotBuilt = errors.New("built without NVML: install a build with cgo to read NVIDIA GPUs")
	// ErrNoDriver means that the driver's library was not found.
	ErrNoDriver = errors.New("no NVIDIA driver: its library libnvidia-ml.so.1 was not found")
)

// defaultInterval is only for tests: a monitor always sets the interval, from package config.
const defaultInterval = 100 * time.Millisecond

// sourceName is the source's name in the sink.
const sourceName = "gpu"

// Source is a sample.Stream of all NVIDIA GPUs of this machine and their MIG devices. Without a driver or a GPU it
// reports that once, emits no rows and retries with increasing pauses.
type Source struct {
	driver   driver
	interval time.Duration
	memory   *memoryInUse
	machine  *machine

	sample.Rounds // one takes at most 50 ms while the driver responds; they do not run without a GPU that can be read

	mu            sync.Mutex
	releasedUntil time.Duration // Stamp.Mono; see Release
	closed        chan struct{} // closed once the driver's files are; nil if no caller waits for that
}

var _ sample.Stream = (*Source)(nil)

// New prepares a source without calling the driver. Its error is ErrNotBuilt, or why the
// library is not trusted.
func New(o Options) (*Source, error) {
	d, err := newDriver(o.Library)
	if err != nil {
		return nil, err
	}
	s := newSource(d, o.Interval)
	s.machine = &machine{root: filepath.Join("/", o.Root)}
	return s, nil
}

func newSource(d driver, interval time.Duration) *Source {
	if interval <= 0 {
		interval = defaultInterval
	}
	return &Source{driver: d, interval: interval, memory: newMemoryInUse()}
}

// Run implements sample.Stream. The error next to a row is what could not be read and what to do about it; the same
// error is emitted once a minute at most. A sample without GPUs only carries an error.
func (s *Source) Run(ctx context.Context, sink sample.Sink) {
	s.SetRunning(true)
	r := newRun(s.driver, s.interval, sink, s.memory)
	r.machine, r.isReleased = s.machine, s.isReleased
	for ctx.Err() == nil {
		waiting := s.TakeWaiters()
		r.poll(ctx, waiting != nil)
		s.SetRunning(r.anyReadable())
		if r.isClosed() {
			s.setClosed()
		}
		if waiting != nil {
			close(waiting)
		}
		s.pause(ctx, r)
	}
	s.SetRunning(false)
	r.end()
	if r.isClosed() {
		s.setClosed()
	}
}

// pause waits until the next round is due or requested.
func (s *Source) pause(ctx context.Context, r *run) {
	due := time.NewTimer(r.next - sample.Now().Mono)
	defer due.Stop()
	select {
	case <-ctx.Done():
	case <-due.C:
		return
	case <-s.Woken():
	case <-r.returned:
	}
	if ctx.Err() == nil {
		earliest := time.NewTimer(r.began + minRoundInterval - sample.Now().Mono)
		defer earliest.Stop()
		select {
		case <-ctx.Done():
		case <-earliest.C:
		}
	}
}
