package follow

import (
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/internal/windows"
)

// Windows opens the windows of a program: those of its lines, and those that it announces itself. From the first one of a kind on, lines of
// its output mark no windows of that kind: frameworks print their epochs whether a callback announces them or not. It
// is safe for concurrent use.
type Windows struct {
	*windows.Client

	epochs, loads atomic.Bool
	newest        atomic.Int64 // monotonic time in nanoseconds
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
		a.loads.Store(true)
	}
	return id, traceparent, err
}
