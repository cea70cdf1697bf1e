// Package emulate is a training loop over real files with an emulated accelerator. The loop waits for a real disk; its
// computations are intervals in which the accelerator counts as busy, as in the MLPerf Storage benchmark. So the split
// of an epoch's time is known in advance on any machine.
//
// The loop reads one record at a time on the caller's goroutine and prefetches nothing. While it reads, the accelerator
// is idle.
package emulate

import (
	"sync"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// Accelerator is busy while any goroutine is inside Compute. It is a sample.Source and safe for concurrent use.
type Accelerator struct {
	id string

	mu      sync.Mutex
	running int           // calls of Compute in progress
	since   time.Duration // Stamp.Mono at which running left zero
	busy    time.Duration // completed intervals
}

// NewAccelerator returns an accelerator that lets its caller sleep while it computes, like a program that waits for an
// event. id is its identifier in the readings, such as "emulated-0".
func NewAccelerator(id string) *Accelerator { return &Accelerator{id: id} }

// Compute keeps the accelerator busy for d and returns how long that took: at least d, and more on a loaded machine. It
// does nothing for d of zero or less. Concurrent calls count once, like kernels that run concurrently.
func (a *Accelerator) Compute(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	begin := a.begin()
	time.Sleep(d)
	return a.end() - begin
}

// begin and end read the clock under the lock, so that no reading can fall between the clock and the counter.
func (a *Accelerator) begin() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := sample.Now().Mono
	if a.running == 0 {
		a.since = now
	}
	a.running++
	return now
}

func (a *Accelerator) end() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := sample.Now().Mono
	a.running--
	if a.running == 0 {
		a.busy += now - a.since
	}
	return now
}

// Read returns the busy time, exact at s.At even during a Compute. It never fails.
func (a *Accelerator) Read(s *sample.Sample) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	s.At = sample.Now()
	busy := a.busy
	if a.running > 0 {
		busy += s.At.Mono - a.since
	}
	s.GPUs = append(s.GPUs, sample.GPU{ID: a.id, Name: "emulated accelerator", Busy: busy})
	return nil
}
