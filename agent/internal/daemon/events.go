package daemon

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/agent/internal/telemetry"
	"github.com/stallspan/stallspan/agent/internal/version"
	"github.com/stallspan/stallspan/internal/alert"
	"github.com/stallspan/stallspan/internal/alert/action"
	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/store/past"
	"github.com/stallspan/stallspan/internal/windows"
)

// eventDispatcher passes every event on: to the exporter as a log record, to the API, and to the actions. It never
// blocks. A nil one, as in record, has no events.
type eventDispatcher struct {
	telemetry   *telemetry.Telemetry
	board       alert.Board
	actions     *action.Runner
	parts       alert.Parts    // of the goroutine that calls look, as is dropped
	dropped     uint64         // spans and log records, at the previous look
	past        *past.Recorder // nil for none
	unsubscribe func()
}

// watchEvents begins to pass on the events of m.
func watchEvents(m *monitor.Monitor, t *telemetry.Telemetry, actions []action.Config) (*eventDispatcher, error) {
	runner, err := action.New(actions, version.Number())
	if err != nil {
		return nil, err
	}
	h := &eventDispatcher{telemetry: t, actions: runner}
	h.unsubscribe = m.OnEvent(func(e alert.Event) { h.post(emit.Happened(e), trace.SpanContext{}) })
	return h, nil
}

// actionsTime is how long an agent that stops waits for actions.
const actionsTime = 5 * time.Second

// close runs the pending actions. Later events are dropped.
func (h *eventDispatcher) close(ctx context.Context) {
	h.unsubscribe()
	ctx, cancel := context.WithTimeout(ctx, actionsTime)
	defer cancel()
	h.actions.Close(ctx)
}

func (h *eventDispatcher) post(e emit.Event, span trace.SpanContext) {
	h.actions.Post(h.show(e, span))
}

// show is post without the actions.
func (h *eventDispatcher) show(e emit.Event, span trace.SpanContext) *emit.Event {
	e = e.Identified(span)
	h.telemetry.Exporter.Log(e, span)
	line := e.JSON()
	h.board.Post(alert.Posted{Line: line, Client: e.Client, Lane: e.Lane()})
	h.past.Event(e.Time, e.Client, e.Lane(), line)
	return &e
}

// begin starts the span of a window. When it ends, its events are passed on.
func (h *eventDispatcher) begin(name string, start time.Time, parent trace.SpanContext) windows.Span {
	return &telemetry.EventSpan{Span: h.telemetry.Begin(name, start, parent), Post: h.post}
}

// api returns the events for the API.
func (h *eventDispatcher) api() api.Events {
	if h == nil {
		return api.Events{}
	}
	return api.Events{Board: &h.board, Try: h.try, Reported: h.post, Export: h.telemetry.Status,
		Trouble: h.trouble}
}

// try emits a test event, and returns where it went.
func (h *eventDispatcher) try(ctx context.Context, name string) (api.Tried, error) {
	e, err := emit.NewTestEvent(name, time.Now())
	if err != nil {
		return api.Tried{}, err
	}
	n := h.show(e, trace.SpanContext{})
	tried := api.Tried{Event: n.JSON(), Logs: "handed to the OTLP exporter", Actions: []api.TriedAction{}}
	if !h.telemetry.Exporter.Logs() {
		tried.Logs = "not exported: OTEL_EXPORTER_OTLP_ENDPOINT is not set, or OTEL_LOGS_EXPORTER=none"
	}
	for _, o := range h.actions.Try(ctx, n) {
		tried.Actions = append(tried.Actions, api.TriedAction{Action: o.Action, OK: o.OK, Says: o.Message,
			Took: o.Took.Seconds()})
	}
	return tried, nil
}

// look emits events about the export itself: failing, or dropping. It is called every few seconds.
func (h *eventDispatcher) look() {
	if h == nil {
		return
	}
	var failing []alert.Part
	if err := h.telemetry.Exporter.Failing(); err != nil {
		failing = append(failing, alert.Part{Name: "export", Error: err.Error()})
	}
	if dropped := h.telemetry.Exporter.Dropped(); dropped > h.dropped {
		failing = append(failing, alert.Part{Name: "export queue", Error: "it is full, and drops the oldest entries"})
		h.dropped = dropped
	}
	for _, e := range h.parts.Evaluate(sample.Now(), failing) {
		h.post(emit.Happened(e), trace.SpanContext{})
	}
}

// trouble returns one line for each action that failed or dropped events, with the count.
func (h *eventDispatcher) trouble() (lines []string) {
	if h == nil {
		return nil
	}
	for _, s := range h.actions.Stats() {
		if s.Failed > 0 {
			lines = append(lines, fmt.Sprintf("%s failed %d of %d times, the last time: %v", s.Action, s.Failed,
				s.Failed+s.Succeeded, s.LastError))
		}
		if s.Dropped > 0 {
			lines = append(lines, fmt.Sprintf("%s dropped %d events: they came too fast", s.Action, s.Dropped))
		}
	}
	if n := h.telemetry.Exporter.LogsDropped(); n > 0 {
		lines = append(lines, fmt.Sprintf("%d log records were dropped: the queue was full, or the backend refused them", n))
	}
	return lines
}
