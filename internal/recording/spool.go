package recording

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

const (
	maxQueued = 16 << 20         // compressed bytes that wait for the disk: hours of a typical machine
	maxWrite  = 64 << 10         // bytes per write
	patience  = 10 * time.Second // how long End waits for a disk without progress
)

var (
	errBehind = fmt.Errorf("its disk makes no progress, and %d MiB wait", maxQueued>>20)
	errStuck  = fmt.Errorf("its disk made no progress for %v, and the end is lost", patience)
)

// Spool writes to a file on a goroutine of its own, so that readings never wait for a disk. It is safe for concurrent
// use.
type Spool struct {
	done chan struct{} // closed when the goroutine has ended

	mu      sync.Mutex
	changed *sync.Cond
	queue   []byte
	queued  int // bytes that are not written
	patient bool
	ended   bool
	err     error // of the disk; nothing is written after it
	written int64 // bytes, with those in the queue
}

// NewSpool begins the goroutine, which End ends.
func NewSpool(to io.Writer) *Spool {
	s := &Spool{done: make(chan struct{})}
	s.changed = sync.NewCond(&s.mu)
	go s.run(to)
	return s
}

// Write queues bytes. The error is the disk's, or that too much waits for it.
func (s *Spool) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.patient && s.err == nil && s.queued+len(p) > maxQueued {
		s.changed.Wait()
	}
	if s.err == nil && s.queued+len(p) > maxQueued {
		s.err = errBehind
	}
	if s.err != nil {
		return 0, s.err
	}
	s.queue = append(s.queue, p...)
	s.queued += len(p)
	s.written += int64(len(p))
	s.changed.Broadcast()
	return len(p), nil
}

// Wait makes Write wait for the disk from now on.
func (s *Spool) Wait() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.patient = true
}

// flush returns when everything so far is written, or the error of the disk.
func (s *Spool) flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.err == nil && s.queued > 0 {
		s.changed.Wait()
	}
	return s.err
}

// End waits until everything is written, and returns the first error. It gives up on a disk that hangs: the goroutine
// then ends with the program. End may be called again.
func (s *Spool) End() error {
	s.mu.Lock()
	s.ended = true
	s.changed.Broadcast()
	s.mu.Unlock()
	for before := -1; ; {
		select {
		case <-s.done:
			_, err := s.state()
			return err
		case <-time.After(patience):
		}
		left, _ := s.state()
		if left == before {
			return errStuck
		}
		before = left
	}
}

func (s *Spool) state() (queued int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queued, s.err
}

// run is the only user of the file until End. An error of the disk ends it, and so does a panic.
func (s *Spool) run(to io.Writer) {
	defer close(s.done)
	var err error
	failed := sample.Protect(func() { err = s.writeAll(to) })
	err = cmp.Or(failed, errors.Unwrap(err), err) // without the path, which the caller knows
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = cmp.Or(s.err, err)
	s.changed.Broadcast()
}

func (s *Spool) writeAll(to io.Writer) error {
	for left := s.take(); len(left) > 0; left = s.take() {
		for len(left) > 0 {
			n, err := to.Write(left[:min(len(left), maxWrite)])
			left = left[n:]
			s.mu.Lock()
			s.queued -= n
			s.changed.Broadcast()
			s.mu.Unlock()
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// take returns what is queued. It returns nothing after the end.
func (s *Spool) take() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.err == nil && len(s.queue) == 0 && !s.ended {
		s.changed.Wait()
	}
	queue := s.queue
	s.queue = nil
	if s.err != nil {
		return nil
	}
	return queue
}
