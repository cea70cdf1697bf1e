package follow

import (
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/internal/windows"
)

// Windows opens the windows of a program: those of its lines, and those that it announces itself. From the first epoch
// on that it announces, lines of its output mark none: frameworks print their epochs whether a callback announces them
// or not. A load of its lines is left out if it announces one meanwhile: it is the same. It is safe for concurrent use.
type Windows struct {
	*windows.Client

	follower atomic.Pointer[Follower] // of its output

	epochs atomic.Bool
	newest atomic.Int64 // monotonic time in nanoseconds

	mu       sync.Mutex
	loads    map[string]struct{} // the announced loads that are open, by id
	lastLoad time.Duration       // when the latest one ended, on the monotonic clock
}

// began notes that a window begins now.
func (a *Windows) began() { a.newest.Store(int64(sample.Now().Mono)) }

// Newest is the monotonic time at which the newest window began.
func (a *Windows) Newest() time.Duration { return time.Duration(a.newest.Load()) }

// Begin opens a window: see api.Windows.
func (a *Windows) Begin(w window.Window, parent trace.SpanContext) (id, traceparent string, err error) {
	a.began()
	id, traceparent, err = a.Client.Begin(w, parent)
	switch {
	case err != nil:
	case w.Kind == window.Epoch:
		a.epochs.Store(true)
	case w.Kind == window.ModelLoad:
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.loads == nil {
			a.loads = map[string]struct{}{}
		}
		a.loads[id] = struct{}{}
	}
	return id, traceparent, err
}

// End closes a window: see api.Windows.
func (a *Windows) End(id string, how window.Outcome, attributes map[string]string) (*window.Report, error) {
	a.mu.Lock()
	if _, load := a.loads[id]; load {
		delete(a.loads, id)
		a.lastLoad = sample.Now().Mono
	}
	a.mu.Unlock()
	return a.Client.End(id, how, attributes)
}

// loadedSince reports whether the program has announced a load that is open or ended after a monotonic time.
func (a *Windows) loadedSince(at time.Duration) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.loads) > 0 || a.lastLoad > at
}

// ReadLog reads lines that the program logs, next to those that it prints.
func (a *Windows) ReadLog(_ window.Window, lines []LogLine) (left int) {
	if f := a.follower.Load(); f != nil {
		return f.readLog(lines)
	}
	return len(lines)
}
