package recording

import (
	"cmp"
	"context"
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
	maxPanics = 5                // of one recording, which ends then
)

var (
	errBehind = fmt.Errorf("it makes no progress, and %d MiB wait", maxQueued>>20)
	errStuck  = fmt.Errorf("it made no progress for %v, and the end of the recording is lost", patience)
)

// spool queues the bytes of a recording, and writes them to its files on a goroutine of its own.
type spool struct {
	warn func(error)
	ctx  context.Context // until close
	stop context.CancelFunc
	done chan struct{} // closed when the goroutine has ended
	now  []piece       // what is being written, without what is; only the goroutine uses it

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
	s.ctx, s.stop = context.WithCancel(context.Background())
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
	s.stop()
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

// run is the only user of the files. After a panic it goes on with what is not written, at the end without a pause.
func (s *spool) run(files *series) {
	defer close(s.done)
	panics := 0
	sample.Restart(s.ctx, func(err error) {
		if panics++; panics == maxPanics {
			s.fail(err)
		}
		s.report(err)
	}, func() { s.writeAll(files) })
	for _, last := range []func(){func() { s.writeAll(files) }, func() {
		if err := files.file.Close(); err != nil {
			s.fail(cmp.Or(errors.Unwrap(err), err)) // without the path, which the caller knows
		}
	}} {
		if err := sample.Protect(last); err != nil {
			s.fail(err)
		}
	}
}

func (s *spool) report(err error) {
	if s.warn != nil {
		s.warn(err)
	}
}

// writeAll writes until the end of the recording.
func (s *spool) writeAll(files *series) {
	for {
		if len(s.now) == 0 {
			s.now = s.take()
		}
		if _, failed := s.state(); failed != nil || len(s.now) == 0 {
			return
		}
		err := s.put(files)
		s.now = nil
		s.fail(err)
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

// put writes what take returned to the files. If a part cannot get a file of its own, it continues in the previous one.
func (s *spool) put(files *series) error {
	for ; len(s.now) > 0; s.now = s.now[1:] {
		p := &s.now[0]
		if p.begins {
			p.begins = false
			if err := files.next(); err != nil {
				s.report(err)
			}
		}
		for len(p.bytes) > 0 {
			n, err := files.file.Write(p.bytes[:min(len(p.bytes), maxWrite)])
			p.bytes = p.bytes[n:]
			s.mu.Lock()
			s.queued -= n
			s.mu.Unlock()
			if err != nil {
				return cmp.Or(errors.Unwrap(err), err)
			}
		}
	}
	return nil
}
