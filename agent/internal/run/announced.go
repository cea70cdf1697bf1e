package run

import (
	"sync/atomic"

	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/internal/windows"
)

// announcedWindows opens the windows that the program under run announces. From the first one of a kind on, lines of
// its output mark no windows of that kind: frameworks print their epochs whether a callback announces them or not. It
// is safe for concurrent use.
type announcedWindows struct {
	*windows.Client

	epochs, loads atomic.Bool
	newest        atomic.Int64 // monotonic time in nanoseconds at which the newest window began
}

// began notes that a window begins now.
func (a *announcedWindows) began() { a.newest.Store(int64(sample.Now().Mono)) }

// Begin opens a window: see api.Windows.
func (a *announcedWindows) Begin(w window.Window, parent trace.SpanContext) (id, traceparent string, err error) {
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
