// Package gpu reads NVIDIA GPUs through NVML, the library of their driver, and AMD GPUs from files of theirs.
//
// The driver buffers utilization samples for some seconds, so each GPU is read once a second without losing a burst.
// AMD's firmware sums its busy time, and each reading is a sample. The samples are resampled to a grid of rows, which
// has the GPUs of both drivers. A row is complete when the samples of every working GPU reach its time. How late a
// driver is, is learned from the timestamps of its samples. The busy time of a GPU without samples for longer stands
// still, and catches up later (see maxBacklog).
//
// The memory of a GPU that is watched is read ten times a second, apart from rows: see WatchMemory.
//
// Once a second each GPU is also read for gauges, details and XID errors: table.go says by which call and how often.
// Field values that are due are read in one call. Queries that a GPU does not support are not repeated. Every call is
// timed. No call is used that measures for a while before it returns.
//
// A call into a driver can hang forever if a GPU falls off the bus, and so can one about all GPUs. Each GPU has calls
// of its own, one at a time, and so has each driver as a whole. A GPU is lost if it says so, and hung while its own
// call does not return; without an answer about it, it is unknown. Nothing waits for a call for longer than patience.
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

// Source is a sample.Stream of all GPUs of this machine and their MIG devices. Without a driver or a GPU it reports
// that once, emits no rows and retries with increasing pauses.
type Source struct {
	drivers  []driver
	interval time.Duration
	memory   *memoryInUse
	machine  *machine // nil in tests

	sample.Rounds // one takes at most 50 ms while a driver responds; they do not run without a GPU that can be read

	mu            sync.Mutex
	releasedUntil time.Duration // Stamp.Mono; see Release
	closed        chan struct{} // closed once the drivers' files are; nil if no caller waits for that
}

var _ sample.Stream = (*Source)(nil)

// New prepares a source without calling a driver.
func New(o Options) *Source {
	m := &machine{root: filepath.Join("/", o.Root), mayLack: o.Library == ""}
	return newSource(o.Interval, m, newDriver(o.Library), &amdgpu{root: m.root})
}

func newSource(interval time.Duration, m *machine, drivers ...driver) *Source {
	if interval <= 0 {
		interval = defaultInterval
	}
	return &Source{drivers: drivers, interval: interval, machine: m, memory: newMemoryInUse()}
}

// Run implements sample.Stream. The error next to a row is what could not be read and what to do about it; the same
// error is emitted once a minute at most. A sample without GPUs only carries an error. The lack of NVIDIA's driver
// counts as an error only if a library was asked for.
func (s *Source) Run(ctx context.Context, sink sample.Sink) {
	s.SetRunning(true)
	w := newGrid(s.interval, sink, s.memory)
	for _, d := range s.drivers {
		newRun(d, w, s.machine).isReleased = s.isReleased
	}
	for ctx.Err() == nil {
		waiting := s.TakeWaiters()
		began := sample.Now().Mono
		w.poll(ctx, waiting != nil)
		s.SetRunning(w.anyReadable())
		if w.isClosed() {
			s.setClosed()
		}
		if waiting != nil {
			close(waiting)
		}
		s.Pause(ctx, w.next, began+minRoundInterval, w.returned)
	}
	s.SetRunning(false)
	for _, r := range w.runs {
		r.end(callTimeout)
	}
	if w.isClosed() {
		s.setClosed()
	}
}
