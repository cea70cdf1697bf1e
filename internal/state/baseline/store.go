package baseline

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/state"
	"github.com/stallspan/stallspan/internal/trust"
	"github.com/stallspan/stallspan/internal/window"
)

const (
	maxPending    = 1024                   // observations that are not written yet: see trust.Queue
	writeInterval = 5 * time.Second        // between writes, and between checks for writes of other processes
	openWait      = 500 * time.Millisecond // the longest wait of Open for the file
	maxWait       = 5 * time.Second        // the longest wait of Save for the file; Close waits a second longer
)

// Store is the file as one process uses it. The records are in memory. Only one goroutine uses the file, so that no
// caller waits for a disk. A Store is safe for concurrent use. A nil Store is empty and learns nothing.
type Store struct {
	path   string
	report func(error)
	file   *state.File[records] // only the goroutine uses it
	unread string               // last error of a read; only the goroutine uses it

	mu         sync.Mutex               // guards the fields below
	known      records                  // those of the file, and pending
	pending    trust.Queue[observation] // not written yet
	overflowed bool                     // some were dropped, and that was reported

	save chan chan struct{} // each is closed after an attempt to write all of pending
	open context.Context    // until Close
	stop context.CancelFunc
	done chan struct{}
}

// Open starts to use the file at path. The file may be missing. It calls report with each problem on any goroutine, and
// may repeat a problem; report must not call the Store. If the file is slow to answer, Open returns without its
// records, and they come later. The caller must close the Store.
func Open(path string, report func(error)) *Store {
	s := newStore(path, report)
	loaded := make(chan struct{})
	go s.run(loaded)
	waitFor(loaded, openWait)
	return s
}

func newStore(path string, report func(error)) *Store {
	s := &Store{
		path: path, report: report, file: newFile(path, report), known: records{},
		save: make(chan chan struct{}), done: make(chan struct{}), pending: trust.Queue[observation]{Size: maxPending},
	}
	s.open, s.stop = context.WithCancel(context.Background())
	return s
}

// waitFor waits until c is closed, and reports whether that was within the limit. A file system may hang.
func waitFor(c <-chan struct{}, limit time.Duration) bool {
	select {
	case <-c:
		return true
	case <-time.After(limit):
		return false
	}
}

// Baseline returns how long windows with a key usually take, and whether enough are known.
func (s *Store) Baseline(key Key) (window.Baseline, bool) {
	if s == nil || key == "" {
		return window.Baseline{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.known[key]; r != nil {
		return r.Baseline()
	}
	return window.Baseline{}, false
}

// Learn adds a window that ended at a time. A slow one is counted but does not change the baseline.
func (s *Store) Learn(key Key, took time.Duration, slow bool, at time.Time) {
	if s == nil || key == "" || took <= 0 {
		return
	}
	o := observation{key, took, slow, at}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known.learn(o); len(s.known) > MaxKeys+maxPending {
		s.known.trim()
	}
	if lost := s.pending.Add(trust.Lane(key.Client()), 1, o); len(lost) > 0 && !s.overflowed {
		s.overflowed = true
		s.report(fmt.Errorf("%s cannot be written as fast as windows end: baselines miss some of them", s.path))
	}
}

// Save waits until all windows are in the file, or report was called with the reason why not. It waits at most 5 s.
func (s *Store) Save() {
	if s == nil {
		return
	}
	saved := make(chan struct{})
	late := time.After(maxWait)
	select {
	case s.save <- saved:
	case <-s.done:
		return
	case <-late:
		return
	}
	select {
	case <-saved:
	case <-late:
	}
}

// Close writes what is pending and stops the goroutine. If the file system hangs, Close returns after 6 s and leaves
// the goroutine behind.
func (s *Store) Close() {
	if s == nil {
		return
	}
	s.stop()
	if !waitFor(s.done, maxWait+time.Second) {
		s.report(fmt.Errorf("%s does not answer: the last windows may be missing in the baselines", s.path))
	}
}

// run is the goroutine that uses the file.
func (s *Store) run(loaded chan<- struct{}) {
	defer close(s.done)
	opened := sync.OnceFunc(func() { close(loaded) })
	sample.Restart(s.open, s.report, func() {
		defer opened()
		s.read()
		opened()
		s.serve()
	})
	if err := sample.Protect(s.write); err != nil {
		s.report(err)
	}
}

// serve writes until the Store is closed.
func (s *Store) serve() {
	ticker := time.NewTicker(writeInterval)
	defer ticker.Stop()
	for {
		select {
		case <-s.open.Done():
			return
		case saved := <-s.save:
			func() {
				defer close(saved)
				s.write()
			}()
		case <-ticker.C:
			if s.write(); s.file.Changed() {
				s.read()
			}
		}
	}
}

func (s *Store) read() {
	all, err := s.file.Load()
	if err != nil {
		s.unread = err.Error()
		s.report(fmt.Errorf("%s cannot be read, so windows are not compared with its baselines: %w", s.path, err))
		return
	}
	s.replace(all, 0)
}

// write adds what is pending to the file.
func (s *Store) write() {
	s.mu.Lock()
	batch, next := s.pending.From(0, s.pending.Len())
	s.mu.Unlock()
	if len(batch) == 0 {
		return
	}
	all, err := s.file.Update(func(all *records) error {
		if *all == nil {
			*all = records{}
		}
		for _, o := range batch {
			all.learn(o)
		}
		all.correct(time.Now())
		all.trim()
		return nil
	})
	switch {
	case err == nil:
		s.replace(all, next)
	case err.Error() != s.unread: // else it was reported by read
		s.report(fmt.Errorf("%s cannot be written, so baselines miss the last windows: %w", s.path, err))
	}
}

// replace sets the records to those of the file, which include the observations of pending before a number.
func (s *Store) replace(all records, next uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if all == nil {
		all = records{}
	}
	s.pending.Forget(next)
	left, _ := s.pending.From(0, s.pending.Len())
	for _, o := range left {
		all.learn(o)
	}
	s.known, s.unread = all, ""
}
