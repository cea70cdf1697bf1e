package monitor

import (
	"sync"
	"time"
)

// errands are goroutines that do one thing and end. The zero value is ready.
type errands struct {
	mu   sync.Mutex
	over bool
	all  sync.WaitGroup
}

// run has something done, unless no more is.
func (e *errands) run(do func()) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.over {
		return false
	}
	e.all.Go(do)
	return true
}

// errandsEnd is how long stop waits. A file system that does not answer may hold an errand for ever.
const errandsEnd = time.Second

// stop waits for those that are under way.
func (e *errands) stop() {
	e.mu.Lock()
	e.over = true
	e.mu.Unlock()
	done := make(chan struct{})
	go func() {
		e.all.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(errandsEnd):
	}
}
