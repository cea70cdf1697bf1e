//go:build linux

package pipeline

import (
	"os"
	"sync"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// accelerator reads the state of a program's accelerator from another process. It is safe for concurrent use.
type accelerator struct {
	offset time.Duration // CLOCK_MONOTONIC less Stamp.Mono

	mu    sync.Mutex
	page  *page // nil once the program is closed
	unmap func() error
	died  time.Duration // CLOCK_MONOTONIC; 0 while the program lives
	busy  time.Duration // last value returned: the processes' clocks agree to about 10 ns, and busy must not decrease
}

func newAccelerator(file *os.File) (*accelerator, error) {
	p, unmap, err := mapPage(file)
	if err != nil {
		return nil, err
	}
	offset := difference(func() time.Duration { return sample.Now().Mono })
	return &accelerator{offset: offset, page: p, unmap: unmap}, nil
}

// Read returns the accelerator's busy time, exact at s.At even during a computation. The value stays after the program
// has ended.
func (a *accelerator) Read(s *sample.Sample) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	s.At = sample.Now()
	if err := a.look(s); err != nil {
		return err
	}
	s.GPUs = append(s.GPUs, sample.GPU{ID: "emulated-0", Name: "emulated accelerator", Busy: a.busy})
	return nil
}

func (a *accelerator) look(s *sample.Sample) error {
	if a.page == nil {
		return nil
	}
	busy, err := a.page.read(func() time.Duration {
		s.At = sample.Now()
		at := s.At.Mono + a.offset
		if a.died > 0 {
			return min(at, a.died)
		}
		return at
	})
	if err == nil {
		a.busy = max(a.busy, busy)
	}
	return err
}

// end records that the program has ended, and its computation with it.
func (a *accelerator) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.died == 0 {
		a.died = sample.Now().Mono + a.offset
	}
}

// close reads the state a last time and unmaps the memory.
func (a *accelerator) close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.page == nil {
		return nil
	}
	_ = a.look(new(sample.Sample))
	a.page = nil
	return a.unmap()
}
