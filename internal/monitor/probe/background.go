package probe

import (
	"sync"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// background runs short tasks on goroutines of their own. The zero value is ready.
type background struct {
	report func(error) // for panics; nil for none

	mu      sync.Mutex
	stopped bool
	tasks   sync.WaitGroup
}

// run starts a task. It returns false after stop.
func (b *background) run(task func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped {
		return false
	}
	b.tasks.Go(func() {
		if err := sample.Protect(task); err != nil && b.report != nil {
			b.report(err)
		}
	})
	return true
}

// stopTime is how long stop waits. A file system that does not respond may hold a task forever.
const stopTime = time.Second

// stop waits for the tasks that are running.
func (b *background) stop() {
	b.mu.Lock()
	b.stopped = true
	b.mu.Unlock()
	sample.Within(stopTime, b.tasks.Wait)
}

// await returns what task returns, or the zero value if that takes longer than timeout, if the task cannot start, or if
// too many are running: in all, or for this client.
func await[T any](p *Probe, client string, timeout time.Duration, task func() T) (result T) {
	if p.running.Take(client) != nil {
		return result
	}
	done := make(chan T, 1)
	if !p.tasks.run(func() {
		defer p.running.Release(client)
		done <- task()
	}) {
		p.running.Release(client)
		return result
	}
	late := time.NewTimer(timeout)
	defer late.Stop()
	select {
	case result = <-done:
	case <-late.C:
	}
	return result
}
