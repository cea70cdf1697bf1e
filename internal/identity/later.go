package identity

import (
	"sync"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// later is work that may wait for another program, such as a process whose memory is locked, or a server. So it is done
// by a goroutine, one at a time.
type later struct {
	mu     sync.Mutex // guards the fields below
	ended  chan struct{}
	closed bool
}

// start does work, unless the last is not done yet.
func (l *later) start(work func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.ended != nil {
		return
	}
	ended := make(chan struct{})
	l.ended = ended
	go func() {
		_ = sample.Protect(work) // counted there
		l.mu.Lock()
		defer l.mu.Unlock()
		l.ended = nil
		close(ended)
	}()
}

// idle reports whether no work is being done.
func (l *later) idle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended == nil
}

// wait waits until no work is left, or for so long.
func (l *later) wait(most time.Duration) {
	l.mu.Lock()
	ended := l.ended
	l.mu.Unlock()
	if ended == nil {
		return
	}
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
	}
}

// close waits for the work that is being done, up to so long, and starts no more.
func (l *later) close(most time.Duration) {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.wait(most)
}
