package telemetry

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/agent/internal/cli"
	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/emit/queue"
	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/internal/windows"
)

const (
	handoverBytes   = 256 << 10       // of the events and windows that wait for the agent
	handoverTimeout = 2 * time.Second // of one request
	handoverTime    = time.Second     // for which run waits at its end
	eventBytes      = 2 << 10         // of an event, about
	reportBytes     = 4 << 10         // of a window's report, about
)

// Handover gives the windows of a run that have ended, and the events of slow ones, to the agent of this machine, if
// there is one that may be asked. It never blocks the program.
type Handover struct {
	sockets []string
	queue   *queue.Queue[handed]
	failed  error // why a server has not taken the newest window that it did not take; of the queue's goroutine
}

// handed is an event or, without one, a window.
type handed struct {
	event  *emit.Event
	window *window.Report
}

// NewHandover begins to give to the servers of these sockets.
func NewHandover(sockets []string) *Handover {
	h := &Handover{sockets: sockets}
	h.queue = queue.New(queue.Options[handed]{Send: h.send, MaxBytes: handoverBytes, MaxBatchItems: 1})
	h.queue.Start()
	return h
}

// send gives what it gets to the first server that takes it. Without one it is in the report of the run alone, so there
// is no second try.
func (h *Handover) send(ctx context.Context, batch []handed) (err error) {
	for i := range batch {
		for _, socket := range h.sockets {
			if err = batch[i].report(ctx, socket); err == nil {
				break
			}
			// else there is no server, or none for this user
			if !cli.Unserved(err) && !errors.Is(err, fs.ErrPermission) && batch[i].window != nil {
				h.failed = err
			}
			if ctx.Err() != nil { // the time is over for the other servers, too
				break
			}
		}
	}
	if err != nil {
		return &queue.Refusal{Items: -1, Err: err}
	}
	return nil
}

func (h *handed) report(ctx context.Context, socket string) error {
	ctx, cancel := context.WithTimeout(ctx, handoverTimeout)
	defer cancel()
	if h.event != nil {
		return api.NewClient(socket).Report(ctx, h.event)
	}
	return api.NewClient(socket).ReportWindow(ctx, explain.NewReport(h.window))
}

// close waits until all is sent, but not for long, and says once if an agent has not taken all windows. A nil handover
// has nothing to send.
func (h *Handover) close(ctx context.Context) {
	if h == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, handoverTime)
	defer cancel()
	h.queue.Close(ctx) // its goroutine has ended
	if h.failed != nil {
		cli.Say("the agent of this machine does not show all windows of this run: %v", h.failed)
	}
}

// post queues an event of a window, and ignores others.
func (h *Handover) post(e emit.Event, span trace.SpanContext) {
	if e.Reportable() {
		e = e.Identified(span)
		h.queue.Push(handed{event: &e}, eventBytes)
	}
}

// Ended queues a window. The agent has those of other programs, so that its page and its list show a run after its end.
func (h *Handover) Ended(r *window.Report) { h.queue.Push(handed{window: r}, reportBytes) }

// EventSpan passes the events of a window on when its span ends.
type EventSpan struct {
	windows.Span
	Post func(e emit.Event, within trace.SpanContext)
}

// End ends the span, and passes its events on.
func (s *EventSpan) End(span emit.Span) {
	s.Span.End(span)
	for _, e := range span.Events {
		s.Post(e, s.Exemplar())
	}
}
