//go:build linux && (amd64 || arm64)

package receiver

import (
	"context"
	"slices"
	"time"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/emit/otlp"
	"github.com/stallspan/stallspan/internal/emit/queue"
	"github.com/stallspan/stallspan/internal/windows"
)

// endedSpan is the span of an ended window, with its place in a trace.
type endedSpan struct {
	emit.Span
	context, parent trace.SpanContext
}

// openSpan is the span of an open window.
type openSpan struct {
	receiver        *stallspanReceiver
	context, parent trace.SpanContext
	exported        bool
}

// begin starts a window's span. It is sampled if its parent is, or if it has none.
func (r *stallspanReceiver) begin(_ string, _ time.Time, parent trace.SpanContext) windows.Span {
	s := &openSpan{receiver: r, context: emit.SpanContext(parent, r.spans != nil), parent: parent}
	s.exported = r.spans != nil && s.context.IsSampled()
	return s
}

// SpanContext returns the place of the span in its trace.
func (s *openSpan) SpanContext() trace.SpanContext { return s.context }

// Exemplar returns the context of a span that will be exported, and an invalid one otherwise.
func (s *openSpan) Exemplar() trace.SpanContext {
	if !s.exported {
		return trace.SpanContext{}
	}
	return s.context
}

// Drop discards the span.
func (s *openSpan) Drop() {}

// End queues the span, and its events as log records.
func (s *openSpan) End(span emit.Span) {
	if s.exported {
		size := spanSize(&span)
		if span.Job != nil {
			size += queue.AttributeBytes(span.Job.Attributes)
		}
		s.receiver.spans.push(endedSpan{span, s.context, s.parent}, size)
	}
	within := s.parent
	if s.receiver.spans != nil {
		within = s.context
	}
	for _, e := range span.Events {
		s.receiver.postEvent(e, within)
	}
}

// bareSpanBytes is the memory of a queued span or event without its attributes, on the large side.
const bareSpanBytes = 256

// spanSize estimates the memory of a queued span with its events and children, in bytes.
func spanSize(s *emit.Span) int {
	n := bareSpanBytes + len(s.Name) + queue.AttributeBytes(s.Attributes)
	for i := range s.Events {
		n += bareSpanBytes + queue.AttributeBytes(s.Events[i].Attributes)
	}
	for i := range s.Children {
		n += spanSize(&s.Children[i])
	}
	return n
}

// addTraces makes next the consumer of the windows' spans.
func (r *stallspanReceiver) addTraces(set receiver.Settings, next consumer.Traces) error {
	report, err := newObsReport(set)
	if err != nil {
		return err
	}
	own := []attribute.KeyValue{emit.OwnProcess()}
	attributes := slices.Concat(r.resource, own)
	scope := emit.Scope(set.BuildInfo.Version)
	r.spans = newOutput("spans", set.Logger, func(ctx context.Context, batch []endedSpan) error {
		traces := ptrace.NewTraces()
		of := map[string]ptrace.SpanSlice{} // by the ID of the job whose resource they have, "" for this machine
		for i := range batch {
			id, resource := "", attributes
			if job := batch[i].Job; job != nil {
				id, resource = job.ID, job.Resource(r.resource)
			}
			if _, known := of[id]; !known {
				to := traces.ResourceSpans().AppendEmpty()
				otlp.Attributes(resource, to.Resource().Attributes())
				spans := to.ScopeSpans().AppendEmpty()
				otlp.Scope(scope, spans.Scope())
				spans.SetSchemaUrl(scope.SchemaURL)
				of[id] = spans.Spans()
			}
			otlp.Span(batch[i].Span, batch[i].context, batch[i].parent, of[id])
		}
		n := traces.SpanCount() // before the consumer may change it
		ctx = report.StartTracesOp(ctx)
		err := next.ConsumeTraces(ctx, traces)
		report.EndTracesOp(ctx, format, n, err)
		return err
	})
	return nil
}
