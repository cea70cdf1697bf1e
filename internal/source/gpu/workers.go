package gpu

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

const (
	// maxThreads is one thread that works and one that was abandoned in a call that hangs.
	maxThreads = 2
	// endTimeout is how long a call may go on after the context is done.
	endTimeout = 100 * time.Millisecond
)

// workers make the driver's calls, one call at a time, each on a dedicated thread. A call that takes too long is
// abandoned, because a thread inside the driver cannot be stopped. Only one goroutine uses workers.
type workers struct {
	active *worker  // idle between two calls of do; or nil
	stuck  []*stuck // in abandoned calls
}

type worker struct {
	jobs     chan func()
	done     chan struct{} // buffered, so that an abandoned worker does not block
	over     chan struct{}
	panicked any    // of the last job; read after done
	last     func() // if not nil, called on the worker's thread at its end; set before jobs is closed
}

// stuck is a worker in an abandoned call, and what to do once the call returns.
type stuck struct {
	*worker
	onReturn func()
}

// outcome is the result of a job.
type outcome int

const (
	completed outcome = iota
	timedOut          // its results must not be accessed until onReturn is called
	noThread          // no thread was left to run it
)

// do runs job on the worker's thread and waits for it. After each tick it calls onTick on the caller's goroutine, which
// returns the time to the next. If job takes longer than limit, or ctx has been done for endTimeout, job is abandoned:
// reap calls onReturn after it has returned. left returns after limit how much longer a job of several calls may take.
func (w *workers) do(ctx context.Context, limit time.Duration, left func() time.Duration, tick time.Duration,
	onTick func() time.Duration, job, onReturn func()) outcome {
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
	ending, ended := ctx.Done(), false
	for {
		select {
		case <-w.active.done:
			if p := w.active.panicked; p != nil { // on the caller's goroutine, which can be started again
				w.active.end()
				w.active = nil
				panic(p)
			}
			return completed
		case <-ticker.C:
			ticker.Reset(onTick())
			continue
		case <-ending:
			ending, ended = nil, true
			timeout.Reset(min(limit, endTimeout))
			continue
		case <-timeout.C:
			if more := left(); more > 0 && !ended {
				timeout.Reset(more)
				continue
			}
		}
		w.stuck = append(w.stuck, &stuck{w.active, onReturn})
		w.active = nil
		return timedOut
	}
}

// available reports whether there is a thread for another job.
func (w *workers) available() bool { return w.active != nil || len(w.stuck) < maxThreads }

// run runs the jobs. Its thread is never used by another goroutine: it ends with this one.
func (w *worker) run() {
	defer close(w.over)
	runtime.LockOSThread()
	for job := range w.jobs {
		w.panicked = panicOf(job)
		w.done <- struct{}{}
	}
	if w.last != nil {
		w.last()
	}
}

// panicOf runs job and returns what it panicked with, or nil.
func panicOf(job func()) (panicked any) {
	defer func() { panicked = recover() }()
	job()
	return nil
}

// reap takes back the workers whose abandoned calls have returned.
func (w *workers) reap() {
	kept := w.stuck[:0]
	for _, s := range w.stuck {
		select {
		case <-s.done:
			if s.panicked != nil { // in a call that was abandoned
				sample.CountPanic()
				s.panicked = nil
			}
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

// end ends the threads that are not in a call. The others end when their call returns. If there are any, the last of
// them calls after on its thread.
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

// end ends an idle worker and waits for its thread.
func (w *worker) end() {
	close(w.jobs)
	<-w.over
}
