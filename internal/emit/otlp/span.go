package otlp

import (
	"encoding/binary"
	"math/rand/v2"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/internal/emit"
)

// The bits of a span's flags beyond those of W3C (opentelemetry/proto/trace/v1/trace.proto, SpanFlags).
const (
	traceFlags     = 0xff  // the flags of W3C's traceparent
	parentKnown    = 0x100 // the next bit is set or unset on purpose
	parentIsRemote = 0x200 // the parent is in another process
)

// Span appends a span with the context own, and its children, each with a new span id. An invalid parent makes the span
// a root. All spans have the trace id, trace state and trace flags of own.
func Span(s emit.Span, own, parent trace.SpanContext, to ptrace.SpanSlice) {
	span := to.AppendEmpty()
	p := place{
		trace: pcommon.TraceID(own.TraceID()),
		state: own.TraceState().String(),
		flags: uint32(own.TraceFlags()) | parentKnown,
	}
	p.put(&s, span)
	span.SetSpanID(pcommon.SpanID(own.SpanID()))
	if parent.IsValid() {
		span.SetParentSpanID(pcommon.SpanID(parent.SpanID()))
	}
	if parent.IsRemote() {
		span.SetFlags(p.flags | parentIsRemote)
	}
	p.children(s.Children, pcommon.SpanID(own.SpanID()), to)
}

// Children appends spans, each with a new span id, as children of a span of the Collector: in its trace, with its trace
// state and trace flags. They belong to the process of the parent, so the parent is not marked as remote.
func Children(spans []emit.Span, parent ptrace.Span, to ptrace.SpanSlice) {
	p := place{
		trace: parent.TraceID(),
		state: parent.TraceState().AsRaw(),
		flags: parent.Flags()&traceFlags | parentKnown,
	}
	p.children(spans, parent.SpanID(), to)
}

// place holds what the spans of one trace and one process share.
type place struct {
	trace pcommon.TraceID
	state string
	flags uint32
}

// put writes everything except the ids of the span and its parent.
func (p *place) put(s *emit.Span, to ptrace.Span) {
	to.SetTraceID(p.trace)
	to.TraceState().FromRaw(p.state)
	to.SetFlags(p.flags)
	to.SetName(s.Name)
	to.SetKind(ptrace.SpanKind(trace.ValidateSpanKind(s.Kind))) // both have OTLP's numbers
	to.SetStartTimestamp(moment(s.Start))
	to.SetEndTimestamp(moment(s.End))
	Fail(s.Failure, to.Status())
	Attributes(s.Attributes, to.Attributes())
	Events(s.Events, to.Events())
	for _, other := range s.Links {
		link := to.Links().AppendEmpty()
		link.SetTraceID(pcommon.TraceID(other.TraceID()))
		link.SetSpanID(pcommon.SpanID(other.SpanID()))
		link.TraceState().FromRaw(other.TraceState().String())
		link.SetFlags(uint32(other.TraceFlags()) | parentKnown | parentIsRemote)
	}
}

// Fail sets the status Error, unless the failure is "" or the status is Error already.
func Fail(failure string, to ptrace.Status) {
	if failure != "" && to.Code() != ptrace.StatusCodeError {
		to.SetCode(ptrace.StatusCodeError)
		to.SetMessage(failure)
	}
}

// children appends spans and their children. The slice grows as with append: to reserve the exact size would copy the
// batch once for each of its spans that gets children.
func (p *place) children(spans []emit.Span, parent pcommon.SpanID, to ptrace.SpanSlice) {
	for i := range spans {
		own, span := newSpanID(), to.AppendEmpty()
		p.put(&spans[i], span)
		span.SetSpanID(own)
		span.SetParentSpanID(parent)
		p.children(spans[i].Children, own, to)
	}
}

// newSpanID returns a random id that is not empty.
func newSpanID() (id pcommon.SpanID) {
	for id.IsEmpty() {
		binary.NativeEndian.PutUint64(id[:], rand.Uint64())
	}
	return id
}

// Events appends events to a span, without their severity, which OTLP lacks there.
func Events(events []emit.Event, to ptrace.SpanEventSlice) {
	to.EnsureCapacity(to.Len() + len(events))
	for i := range events {
		event := to.AppendEmpty()
		event.SetName(events[i].Name)
		event.SetTimestamp(moment(events[i].Time))
		Attributes(events[i].Attributes, event.Attributes())
	}
}
