package receiver

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/internal/alert"
	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/otlp"
	"github.com/stallspan/stallspan/internal/session"
)

// ended is the span of a window that ended, in its place.
type ended struct {
	emit.Span
	own, parent trace.SpanContext
}

// open is the span of a window that is open.
type open struct {
	watcher     *watcher
	own, parent trace.SpanContext
	leaves      bool
}

// begin starts a window's span. It is sampled if its parent is, or if it has none.
func (w *watcher) begin(_ string, _ time.Time, parent trace.SpanContext) session.Span {
	s := &open{watcher: w, own: session.Context(parent, w.spans != nil), parent: parent}
	s.leaves = w.spans != nil && s.own.IsSampled()
	return s
}

func (s *open) SpanContext() trace.SpanContext { return s.own }

func (s *open) Exemplar() trace.SpanContext {
	if !s.leaves {
		return trace.SpanContext{}
	}
	return s.own
}

func (s *open) Drop() {}

func (s *open) End(span emit.Span) {
	if s.leaves {
		s.watcher.spans.put(ended{span, s.own, s.parent}, size(&span))
	}
	within := s.parent
	if s.watcher.spans != nil {
		within = s.own
	}
	for _, e := range span.Events {
		s.watcher.tell(e, within)
	}
}

// happened has a record made of what happens to the machine, unless the config leaves the device out. Of a storm, the window
// that was in it has told already, whatever its disk.
func (w *watcher) happened(e alert.Event) {
	if e.Kind == alert.IOStorm {
		w.tell(emit.Happened(e), trace.SpanContext{})
		return
	}
	if e.GPU != nil && !w.devices.gpus.all() && !w.devices.takesGPU(e.GPU) || e.Disk != "" && !w.devices.disks.all() && !w.devices.disks.takes(e.Disk) {
		return
	}
	w.tell(emit.Happened(e), trace.SpanContext{})
}

// tell hands an event to the pipeline of logs, and shows it to those who look at the API.
func (w *watcher) tell(e emit.Event, within trace.SpanContext) {
	e = e.Identified(within)
	w.records.put(e, sizeOf(e.Attributes))
	w.board.Post(e.JSON())
}

// giveSpans has spans handed to a pipeline.
func (w *watcher) giveSpans(set receiver.Settings, next consumer.Traces) error {
	report, err := reportOf(set)
	if err != nil {
		return err
	}
	w.spans = newOutbox("spans", set.Logger, func(ctx context.Context, batch []ended) error {
		traces := ptrace.NewTraces()
		resource := traces.ResourceSpans().AppendEmpty()
		otlp.Attributes(append(w.resource[:len(w.resource):len(w.resource)], emit.OwnProcess()), resource.Resource().Attributes())
		scope := resource.ScopeSpans().AppendEmpty()
		otlp.Scope(emit.Scope(set.BuildInfo.Version), scope.Scope())
		scope.SetSchemaUrl(emit.Scope("").SchemaURL)
		for i := range batch {
			otlp.Span(batch[i].Span, batch[i].own, batch[i].parent, scope.Spans())
		}
		n := traces.SpanCount() // who takes them may empty it
		ctx = report.StartTracesOp(ctx)
		err := next.ConsumeTraces(ctx, traces)
		report.EndTracesOp(ctx, format, n, err)
		return err
	})
	return nil
}

// giveRecords has events handed to a pipeline.
func (w *watcher) giveRecords(set receiver.Settings, next consumer.Logs) error {
	report, err := reportOf(set)
	if err != nil {
		return err
	}
	w.records = newOutbox("log records", set.Logger, func(ctx context.Context, batch []emit.Event) error {
		logs := plog.NewLogs()
		resource := logs.ResourceLogs().AppendEmpty()
		otlp.Attributes(w.resource, resource.Resource().Attributes())
		scope := resource.ScopeLogs().AppendEmpty()
		otlp.Scope(emit.Scope(set.BuildInfo.Version), scope.Scope())
		scope.SetSchemaUrl(emit.Scope("").SchemaURL)
		for i := range batch {
			otlp.Record(batch[i], batch[i].Span, scope.LogRecords())
		}
		n := logs.LogRecordCount()
		ctx = report.StartLogsOp(ctx)
		err := next.ConsumeLogs(ctx, logs)
		report.EndLogsOp(ctx, format, n, err)
		return err
	})
	return nil
}

// format is what the Collector's own telemetry calls the form in which windows arrive.
const format = "stallspan"

func reportOf(set receiver.Settings) (*receiverhelper.ObsReport, error) {
	return receiverhelper.NewObsReport(receiverhelper.ObsReportSettings{
		ReceiverID: set.ID, Transport: "http", ReceiverCreateSettings: set,
	})
}
