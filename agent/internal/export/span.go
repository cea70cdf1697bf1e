package export

import (
	"context"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/session"
)

// Open is a span that has begun. It is safe for concurrent use, and what is called after End or Drop does nothing.
// So does everything on a nil *Open, which stands for a span that nobody began.
type Open struct {
	tracer  trace.Tracer // nil when no spans leave, as is span
	span    trace.Span
	context trace.SpanContext
	over    atomic.Bool
}

// Begin starts a span of kind internal, as a child of parent where that is valid and as the root of a new trace
// otherwise.
//
// When no spans leave, nobody will ever see this one, so it must not come between the spans of others: its context
// is then the parent's own, or a new one, sampled, where there is none.
func (e *Exporter) Begin(name string, start time.Time, parent trace.SpanContext) *Open {
	if e.tracer == nil {
		if !parent.IsValid() {
			parent = session.Root()
		}
		return &Open{context: parent}
	}
	return begin(e.tracer, name, start, parent)
}

func begin(tracer trace.Tracer, name string, start time.Time, parent trace.SpanContext) *Open {
	ctx := trace.ContextWithSpanContext(context.Background(), parent)
	_, span := tracer.Start(ctx, validText(name), trace.WithTimestamp(start), trace.WithSpanKind(trace.SpanKindInternal))
	return &Open{tracer: tracer, span: span, context: span.SpanContext()}
}

// Traceparent is the span's context as a W3C traceparent, for a child to continue the trace; "" for a nil *Open.
func (o *Open) Traceparent() string { return session.Traceparent(o.SpanContext()) }

// SpanContext is the place in the trace: the parent of other spans.
func (o *Open) SpanContext() trace.SpanContext {
	if o == nil {
		return trace.SpanContext{}
	}
	return o.context
}

// Exemplar is the context of a span that will be exported, invalid for any other: a metric should not point to a
// span that no backend has.
func (o *Open) Exemplar() trace.SpanContext {
	if o == nil || o.span == nil || !o.context.IsSampled() {
		return trace.SpanContext{}
	}
	return o.context
}

// Drop forgets the span: what it stood for never happened.
func (o *Open) Drop() {
	if o != nil {
		o.over.Store(true)
	}
}

// End gives the span everything that s knows, with its children and at the times that s has, and exports it. Only
// the start stays what Begin was told, as other spans may have seen it.
func (o *Open) End(s emit.Span) {
	if o == nil || o.over.Swap(true) || o.span == nil {
		return
	}
	for _, child := range s.Children { // first: should the queue be full, they go before their parent
		begin(o.tracer, child.Name, child.Start, o.context).End(child)
	}
	if !o.span.IsRecording() {
		return
	}
	o.span.SetName(validText(s.Name))
	o.span.SetAttributes(validAttributes(s.Attributes)...)
	for _, e := range s.Events {
		o.span.AddEvent(validText(e.Name),
			trace.WithTimestamp(e.Time), trace.WithAttributes(validAttributes(e.Attributes)...))
	}
	o.span.End(trace.WithTimestamp(s.End))
}
