package gpu

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"
)

const (
	// mostThreads is the thread that works and the one that was abandoned in a call which hangs.
	maxThreads = 2
	// lastWait is how long a call that is under way when everything ends may go on.
	endTimeout = 100 * time.Millisecond
)

// workers make the driver's calls, each on a thread of its own, one call at a time. A call that takes too long is
// abandoned, for a thread inside the driver cannot be ended. Only one goroutine uses workers.
type workers struct {
	active *worker  // idle between two calls of do; nil when there is none
	stuck  []*stuck // inside calls that were abandoned
}

type worker struct {
	jobs chan func()
	done chan struct{} // of one element, so that a worker never waits for whoever abandoned it
	over chan struct{}
	last func() // called on the worker's thread at its end, where it is not nil; set before jobs is closed
}

// stuck is a worker inside an abandoned call, and what to do once it has returned.
type stuck struct {
	*worker
	onReturn func()
}

// outcome is how a job ended.
type outcome int

const (
	completed outcome = iota
	timedOut          // it took longer than its limit; its results must not be touched until late is called
	noThread          // no thread was left to run it
)

// do runs job on the worker's thread and waits for it. Each time that pulse says so, on the caller's goroutine, it calls
// beat, which gives the time to the next. When the job takes longer than limit, or ctx has ended for lastWait, it is
// abandoned: reap calls late after it has returned.
func (w *workers) do(ctx context.Context, limit, tick time.Duration, onTick func() time.Duration, job, onReturn func()) outcome {
	if !w.available() {
		return noThread
	}
	if w.active == nil {
		w.active = &worker{jobs: make(chan func()), done: make(chan struct{}, 1), over: make(chan struct{})}
		go w.active.run()
	}
	w.active.jobs <- job
	timeout := time.NewTimer(limit)
	defer timeout.Stop()
	ticker := time.NewTimer(tick)
	defer ticker.Stop()
	ending := ctx.Done()
	for {
		select {
		case <-w.active.done:
			return completed
		case <-ticker.C:
			ticker.Reset(onTick())
			continue
		case <-ending:
			ending = nil
			timeout.Reset(min(limit, endTimeout))
			continue
		case <-timeout.C:
		}
		w.stuck = append(w.stuck, &stuck{w.active, onReturn})
		w.active = nil
		return timedOut
	}
}

// available says whether there is a thread for another job.
func (w *workers) available() bool { return w.active != nil || len(w.stuck) < maxThreads }

// run makes the calls. The thread is never given back to other goroutines: it ends with this one.
func (w *worker) run() {
	defer close(w.over)
	runtime.LockOSThread()
	for job := range w.jobs {
		job()
		w.done <- struct{}{}
	}
	if w.last != nil {
		w.last()
	}
}

// reap takes back the workers whose calls have returned.
func (w *workers) reap() {
	kept := w.stuck[:0]
	for _, s := range w.stuck {
		select {
		case <-s.done:
			s.onReturn()
			if w.active == nil {
				w.active = s.worker
			} else {
				s.end()
			}
		default:
			kept = append(kept, s)
		}
	}
	clear(w.stuck[len(kept):])
	w.stuck = kept
}

// end ends the threads that are not inside a call. The others end when their call returns; after the last of them is
// called, on its thread, where there are any.
func (w *workers) end(after func()) {
	w.reap()
	if w.active != nil {
		w.active.end()
		w.active = nil
	}
	left := new(atomic.Int32)
	left.Store(int32(len(w.stuck)))
	for _, s := range w.stuck {
		s.last = func() {
			if left.Add(-1) == 0 {
				after()
			}
		}
		close(s.jobs)
	}
}

// end ends a worker between two jobs and waits for it.
func (w *worker) end() {
	close(w.jobs)
	<-w.over
}
