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
	parentKnown    = 0x100 // it is known whether the parent is remote
	parentIsRemote = 0x200 // the parent is of another process
)

// Span appends a span that has the context own, and below it its children, each with a new span id. parent may be
// invalid: the span is then a root. Trace id, trace state and trace flags are own's, for the children too. All are of
// kind internal and have no status.
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

// Children appends spans, each with a new span id, below a span that the Collector has already: in its trace, with its
// trace state and trace flags. They belong to the process that the parent is of, so the parent is not marked as remote.
func Children(spans []emit.Span, parent ptrace.Span, to ptrace.SpanSlice) {
	p := place{
		trace: parent.TraceID(),
		state: parent.TraceState().AsRaw(),
		flags: parent.Flags()&traceFlags | parentKnown,
	}
	p.children(spans, parent.SpanID(), to)
}

// place is what spans of one trace and one process have in common.
type place struct {
	trace pcommon.TraceID
	state string
	flags uint32
}

// put writes everything but the span's own id and its parent's.
func (p *place) put(s *emit.Span, to ptrace.Span) {
	to.SetTraceID(p.trace)
	to.TraceState().FromRaw(p.state)
	to.SetFlags(p.flags)
	to.SetName(text(s.Name))
	to.SetKind(ptrace.SpanKindInternal)
	to.SetStartTimestamp(moment(s.Start))
	to.SetEndTimestamp(moment(s.End))
	Attributes(s.Attributes, to.Attributes())
	Events(s.Events, to.Events())
}

// children writes spans and those below them. It lets the slice grow as append does: to make just the room that is
// needed would copy a batch once for each of its spans that gets children.
func (p *place) children(spans []emit.Span, parent pcommon.SpanID, to ptrace.SpanSlice) {
	for i := range spans {
		own, span := newSpanID(), to.AppendEmpty()
		p.put(&spans[i], span)
		span.SetSpanID(own)
		span.SetParentSpanID(parent)
		p.children(spans[i].Children, own, to)
	}
}

// newSpanID is never the empty id.
func newSpanID() (id pcommon.SpanID) {
	for id.IsEmpty() {
		binary.NativeEndian.PutUint64(id[:], rand.Uint64())
	}
	return id
}

// Events appends events to a span. Their severity is left out: OTLP has none there.
func Events(events []emit.Event, to ptrace.SpanEventSlice) {
	to.EnsureCapacity(to.Len() + len(events))
	for i := range events {
		event := to.AppendEmpty()
		event.SetName(text(events[i].Name))
		event.SetTimestamp(moment(events[i].Time))
		Attributes(events[i].Attributes, event.Attributes())
	}
}
