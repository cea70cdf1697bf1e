// Package emulate is an accelerator that exists only on paper and a training loop over files that are real: what
// the loop waits for is a disk's true latency, what it computes is time that the accelerator is told to be busy, as
// the MLPerf Storage benchmark does it. So the split of an epoch's time is known beforehand, on any machine.
//
// The loop reads one record at a time, on the caller's goroutine, and prefetches nothing: while it reads, the
// accelerator idles.
package emulate

import (
	"sync"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// Accelerator is busy exactly while somebody is inside Compute. It is a sample.Source, and safe for concurrent use.
type Accelerator struct {
	id   string
	spin bool

	mu      sync.Mutex
	running int           // calls of Compute under way
	since   time.Duration // Stamp.Mono at which running left zero
	busy    time.Duration // stretches that are over
}

// NewAccelerator makes one whose caller sleeps while it computes, as a program does that waits for an event. id is
// what it is called in the readings: "emulated-0".
func NewAccelerator(id string) *Accelerator { return &Accelerator{id: id} }

// NewSpinningAccelerator makes one whose caller keeps a core busy while it computes, as CUDA does by default when a
// program synchronises with its device.
func NewSpinningAccelerator(id string) *Accelerator { return &Accelerator{id: id, spin: true} }

// Compute keeps the accelerator busy for d and returns how long that really took, which is never less (zero or less
// means nothing to do) and on a loaded machine more. Calls that overlap count once, as kernels do that run side by
// side.
func (a *Accelerator) Compute(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	begin := a.begin()
	if a.spin {
		for now := begin; now-begin < d; {
			now = sample.Now().Mono
		}
	} else {
		time.Sleep(d)
	}
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

// Read gives the time for which the accelerator has been busy, exact at s.At even in the middle of a Compute. It
// never fails.
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
