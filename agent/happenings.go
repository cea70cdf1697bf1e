package agent

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/internal/alert"
	"github.com/stallspan/stallspan/internal/alert/action"
	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/session"
)

// happenings is the way of everything that happens: it leaves as a log record, is shown to those who look, and handed to
// the actions. Nothing of it waits. A nil one, as of record, knows of nothing.
type happenings struct {
	telemetry   *telemetry
	board       alert.Board
	actions     *action.Runner
	parts       alert.Parts // of the goroutine that looks after the program's own parts, as is dropped
	dropped     uint64      // spans and log records, at the look before
	unsubscribe func()
}

// watchEvents begins to pass on what m sees happen.
func watchEvents(m *monitor.Monitor, t *telemetry, actions []action.Config) (*happenings, error) {
	runner, err := action.New(actions, version())
	if err != nil {
		return nil, err
	}
	h := &happenings{telemetry: t, actions: runner}
	h.unsubscribe = m.OnEvent(func(e alert.Event) { h.post(emit.Happened(e), trace.SpanContext{}) })
	return h, nil
}

// actionsTime is for how long an agent that stops waits for actions.
const actionsTime = 5 * time.Second

// close has the actions do what waits for them. What happens after it is told to nobody.
func (h *happenings) close(ctx context.Context) {
	h.unsubscribe()
	ctx, cancel := context.WithTimeout(ctx, actionsTime)
	defer cancel()
	h.actions.Close(ctx)
}

func (h *happenings) post(e emit.Event, span trace.SpanContext) {
	h.actions.Post(h.show(e, span))
}

// show is post without the actions.
func (h *happenings) show(e emit.Event, span trace.SpanContext) *emit.Event {
	e = e.Identified(span)
	h.telemetry.exporter.Log(e, span)
	h.board.Post(e.JSON())
	return &e
}

// begin starts the span of a window, whose events are passed on when it ends.
func (h *happenings) begin(name string, start time.Time, parent trace.SpanContext) session.Span {
	return &tellingSpan{h.telemetry.begin(name, start, parent), h}
}

type tellingSpan struct {
	session.Span
	to *happenings
}

func (s *tellingSpan) End(span emit.Span) {
	s.Span.End(span)
	for _, e := range span.Events {
		s.to.post(e, s.Exemplar())
	}
}

// api is what the API shows of alert.
func (h *happenings) api() api.Events {
	if h == nil {
		return api.Events{}
	}
	return api.Events{Board: &h.board, Try: h.try, Trouble: h.trouble}
}

// try makes an event that is a test, and says where it went.
func (h *happenings) try(ctx context.Context, name string) (api.Tried, error) {
	e, err := emit.Trial(name, time.Now())
	if err != nil {
		return api.Tried{}, err
	}
	n := h.show(e, trace.SpanContext{})
	tried := api.Tried{Event: n.JSON(), Logs: "handed to the OTLP exporter", Actions: []api.TriedAction{}}
	if !h.telemetry.exporter.Logs() {
		tried.Logs = "none leaves: OTEL_EXPORTER_OTLP_ENDPOINT is not set, or OTEL_LOGS_EXPORTER is none"
	}
	for _, o := range h.actions.Try(ctx, n) {
		tried.Actions = append(tried.Actions, api.TriedAction{Action: o.Action, OK: o.OK, Says: o.Message, Took: o.Took.Seconds()})
	}
	return tried, nil
}

// look sees whether what is sent arrives. It is called every few seconds.
func (h *happenings) look() {
	if h == nil {
		return
	}
	var failing []alert.Part
	if err := h.telemetry.exporter.Failing(); err != nil {
		failing = append(failing, alert.Part{Name: "export", Error: err.Error()})
	}
	if dropped := h.telemetry.exporter.Dropped(); dropped > h.dropped {
		failing = append(failing, alert.Part{Name: "export queue", Error: "it is full, and what is oldest in it is lost"})
		h.dropped = dropped
	}
	for _, e := range h.parts.Evaluate(sample.Now(), failing) {
		h.post(emit.Happened(e), trace.SpanContext{})
	}
}

// trouble says in one line for each action that failed, or left something out, how often.
func (h *happenings) trouble() (lines []string) {
	if h == nil {
		return nil
	}
	for _, s := range h.actions.Stats() {
		if s.Failed > 0 {
			lines = append(lines, fmt.Sprintf("%s failed %d of %d times, the last time: %v", s.Action, s.Failed, s.Failed+s.Succeeded, s.LastError))
		}
		if s.Dropped > 0 {
			lines = append(lines, fmt.Sprintf("%s was not told of %d events: they came too fast for it", s.Action, s.Dropped))
		}
	}
	if n := h.telemetry.exporter.LogsDropped(); n > 0 {
		lines = append(lines, fmt.Sprintf("%d log records did not reach the OTLP backend: the queue was full, or it refused them", n))
	}
	return lines
}
