package export

import (
	"context"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/internal/emit"
)

// Open is a started span. It is safe for concurrent use. After End or Drop, its methods change nothing. A nil *Open is
// a span that was never started.
type Open struct {
	spans   *spanProcessor
	tracer  trace.Tracer // nil if no spans are exported, as is span
	span    trace.Span
	context trace.SpanContext
	over    atomic.Bool
}

// Begin starts a span of kind internal, as a child of a valid parent or as the root of a new trace.
func (e *Exporter) Begin(name string, start time.Time, parent trace.SpanContext) *Open {
	if e.tracer == nil {
		return &Open{context: emit.SpanContext(parent, false)}
	}
	o := &Open{spans: e.spans, tracer: e.tracer}
	o.begin(name, trace.SpanKindInternal, start, parent)
	return o
}

func (o *Open) begin(name string, kind trace.SpanKind, start time.Time, parent trace.SpanContext) {
	ctx := trace.ContextWithSpanContext(context.Background(), parent)
	_, o.span = o.tracer.Start(ctx, name, trace.WithTimestamp(start), trace.WithSpanKind(kind))
	o.context = o.span.SpanContext()
}

// Traceparent returns the span's context as a W3C traceparent for child processes; "" for a nil *Open.
func (o *Open) Traceparent() string { return emit.Traceparent(o.SpanContext()) }

// SpanContext returns the span's place in the trace, for child spans.
func (o *Open) SpanContext() trace.SpanContext {
	if o == nil {
		return trace.SpanContext{}
	}
	return o.context
}

// Exemplar returns the context of a span that will be exported, and an invalid one otherwise: an exemplar must not
// point to a span that no backend has.
func (o *Open) Exemplar() trace.SpanContext {
	if o == nil || o.span == nil || !o.context.IsSampled() {
		return trace.SpanContext{}
	}
	return o.context
}

// Drop discards the span.
func (o *Open) Drop() {
	if o != nil {
		o.over.Store(true)
	}
}

// End exports the span with the content of s, and its children. Only the start time stays that of Begin, because child
// processes may have seen it.
func (o *Open) End(s emit.Span) {
	if o == nil || o.span == nil {
		return
	}
	o.end(s, jobResource{o.spans.resourceOf(s.Job), true})
}

// end is End with the resource of the span and its children, if they have one of their own.
func (o *Open) end(s emit.Span, of jobResource) {
	if o.over.Swap(true) {
		return
	}
	for _, child := range s.Children { // first: a full queue drops them before their parent
		c := &Open{spans: o.spans, tracer: o.tracer}
		c.begin(child.Name, child.Kind, child.Start, o.context)
		c.end(child, jobResource{of.Resource, false})
	}
	if !o.span.IsRecording() {
		return
	}
	o.span.SetName(s.Name)
	o.span.SetAttributes(s.Attributes...)
	for _, to := range s.Links {
		o.span.AddLink(trace.Link{SpanContext: to})
	}
	if s.Failure != "" {
		o.span.SetStatus(codes.Error, s.Failure)
	}
	for _, e := range s.Events {
		o.span.AddEvent(e.Name, trace.WithTimestamp(e.Time), trace.WithAttributes(e.Attributes...))
	}
	if of.Resource != nil {
		o.spans.resources.Store(o.context.SpanID(), of)
	}
	o.span.End(trace.WithTimestamp(s.End)) // calls OnEnd
}
