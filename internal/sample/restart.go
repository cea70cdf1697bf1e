package sample

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// A part that has panicked pauses. The pause doubles each time.
const (
	firstPause = time.Second
	lastPause  = time.Minute
)

// pause is how long a part pauses after a panic, by how long it paused before.
func pause(before time.Duration) time.Duration { return min(max(2*before, firstPause), lastPause) }

// panics counts those of this process. Its components share it, as they share the sampling.
var panics atomic.Uint64

// Panics returns how many panics of this process have been caught.
func Panics() uint64 { return panics.Load() }

// CountPanic counts a panic that was caught elsewhere than in Protect.
func CountPanic() { panics.Add(1) }

// Protect calls do. A panic becomes an error: it must not end the program around us, which may be a user's Collector.
func Protect(do func()) (err error) {
	defer func() {
		if p := recover(); p != nil {
			CountPanic()
			err = fmt.Errorf("a bug in stallspan, please report it: %v", p)
		}
	}()
	do()
	return nil
}

// Within calls do on another goroutine, and waits for it up to limit. It reports false if do goes on, and leaves it
// behind: only the kernel may be able to end what it waits for.
func Within(limit time.Duration, do func()) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = Protect(do) // counted there
	}()
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case <-done:
		return true
	case <-late.C:
		return false
	}
}

// Restart runs a part of the program until it returns. If it panics, Restart reports that, pauses and runs it again,
// unless ctx has ended.
func Restart(ctx context.Context, report func(error), run func()) {
	for wait := time.Duration(0); ; {
		err := Protect(run)
		if err == nil {
			return
		}
		_ = Protect(func() { report(err) })
		wait = pause(wait)
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// Tasks are short tasks on goroutines of their own. A task may wait for something that never answers. The zero value is
// ready.
type Tasks struct {
	Report func(error) // for panics; nil for none

	mu      sync.Mutex
	stopped bool
	running sync.WaitGroup
}

// Start starts a task. It returns false after Stop.
func (t *Tasks) Start(task func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopped {
		return false
	}
	t.running.Go(func() {
		if err := Protect(task); err != nil && t.Report != nil {
			t.Report(err)
		}
	})
	return true
}

// Wait waits for the tasks that are running, up to limit. Call no Start meanwhile.
func (t *Tasks) Wait(limit time.Duration) { Within(limit, t.running.Wait) }

// Stop starts no more tasks, and waits for those that are running, up to limit.
func (t *Tasks) Stop(limit time.Duration) {
	t.mu.Lock()
	t.stopped = true
	t.mu.Unlock()
	t.Wait(limit)
}
