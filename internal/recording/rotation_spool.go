package recording

import (
	"cmp"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

const (
	maxQueued = 16 << 20         // compressed bytes that wait for the disk: hours of a typical machine
	maxWrite  = 64 << 10         // bytes per write
	patience  = 10 * time.Second // how long Close waits for a disk without progress
)

var (
	errBehind = fmt.Errorf("it makes no progress, and %d MiB wait", maxQueued>>20)
	errStuck  = fmt.Errorf("it made no progress for %v, and the end of the recording is lost", patience)
)

// spool queues the bytes of a recording, and writes them to its files on a goroutine of its own.
type spool struct {
	warn func(error)
	done chan struct{} // closed when the goroutine has ended

	mu      sync.Mutex
	changed *sync.Cond
	queue   []piece
	queued  int // bytes that are not written
	busy    bool
	closed  bool
	err     error // of the disk; nothing is written after it
	cutAt   int64 // bytes written when the current part began
	written int64
}

// piece has bytes of one part.
type piece struct {
	begins bool // a new part: create its file first
	bytes  []byte
}

func newSpool(files *series, warn func(error)) *spool {
	s := &spool{warn: warn, done: make(chan struct{})}
	s.changed = sync.NewCond(&s.mu)
	go s.run(files)
	return s
}

// Write queues bytes; it never waits for the disk.
func (s *spool) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil && s.queued+len(p) > maxQueued {
		s.err = errBehind
	}
	if s.err != nil {
		return 0, s.err
	}
	if len(s.queue) == 0 {
		s.queue = append(s.queue, piece{})
	}
	last := &s.queue[len(s.queue)-1]
	last.bytes = append(last.bytes, p...)
	s.queued += len(p)
	s.written += int64(len(p))
	s.changed.Broadcast()
	return len(p), nil
}

// cut begins a new part.
func (s *spool) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = append(s.queue, piece{begins: true})
	s.cutAt = s.written
	s.changed.Broadcast()
}

// size returns the bytes of the current part, and those of all parts.
func (s *spool) size() (part, all int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.written - s.cutAt, s.written
}

// wait returns when everything so far is written, or the error of the disk.
func (s *spool) wait() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.err == nil && (s.busy || len(s.queue) > 0) {
		s.changed.Wait()
	}
	return s.err
}

// close waits until everything is written and the file is closed. It gives up on a disk that hangs: the goroutine then
// ends with the program.
func (s *spool) close() error {
	s.mu.Lock()
	s.closed = true
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

func (s *spool) state() (queued int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queued, s.err
}

// run is the only user of the files. The recording ends with an error of the disk, and with a panic.
func (s *spool) run(files *series) {
	defer close(s.done)
	for _, part := range []func() error{
		func() error { return s.writeAll(files) }, func() error { return files.file.Close() },
	} {
		var err error
		failed := sample.Protect(func() { err = part() })
		s.fail(cmp.Or(failed, errors.Unwrap(err), err)) // without the path, which the caller knows
	}
}

func (s *spool) report(err error) {
	if s.warn != nil {
		s.warn(err)
	}
}

// writeAll writes until the end of the recording.
func (s *spool) writeAll(files *series) error {
	for {
		pieces := s.take()
		if len(pieces) == 0 {
			return nil
		}
		for i := range pieces {
			if err := s.put(files, &pieces[i]); err != nil {
				return err
			}
		}
	}
}

// take returns what is queued. It returns nothing after the end of the recording.
func (s *spool) take() []piece {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy = false
	s.changed.Broadcast()
	for s.err == nil && len(s.queue) == 0 && !s.closed {
		s.changed.Wait()
	}
	if s.err != nil {
		s.queue = nil
		return nil
	}
	pieces := s.queue
	s.queue, s.busy = nil, true
	return pieces
}

func (s *spool) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
	s.changed.Broadcast()
}

// put writes a piece to the files. If a part cannot get a file of its own, it continues in the previous one.
func (s *spool) put(files *series, p *piece) error {
	if p.begins {
		if err := files.next(); err != nil {
			s.report(err)
		}
	}
	for left := p.bytes; len(left) > 0; {
		n, err := files.file.Write(left[:min(len(left), maxWrite)])
		left = left[n:]
		s.mu.Lock()
		s.queued -= n
		s.mu.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}
