// Package otlp converts the telemetry of package emit to the Collector's pdata. It uses no metric, attribute or event
// by name.
//
// The result equals what the SDK's exporters send, to the byte, for the types of attributes and of metrics that emit
// makes. Text must be valid UTF-8, as that of emit is. The functions are safe for concurrent use with different
// destinations.
package otlp

import (
	"encoding/binary"
	"math/rand/v2"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/internal/emit"
)

// Attributes sets each attribute on to. It replaces values of the same key, and leaves out attributes without a key,
// which OTLP does not have.
func Attributes(attrs []attribute.KeyValue, to pcommon.Map) {
	to.EnsureCapacity(to.Len() + len(attrs))
	for i := range attrs {
		put(attrs[i].Key, attrs[i].Value, to)
	}
}

// put sets one attribute, of a type that emit makes.
func put(key attribute.Key, v attribute.Value, to pcommon.Map) {
	if key == "" {
		return
	}
	name := string(key)
	switch v.Type() {
	case attribute.STRING:
		to.PutStr(name, v.AsString())
	case attribute.INT64:
		to.PutInt(name, v.AsInt64())
	case attribute.FLOAT64:
		to.PutDouble(name, v.AsFloat64())
	case attribute.BOOL:
		to.PutBool(name, v.AsBool())
	case attribute.STRINGSLICE:
		texts, list := v.AsStringSlice(), to.PutEmptySlice(name)
		list.EnsureCapacity(len(texts))
		for _, text := range texts {
			list.AppendEmpty().SetStr(text)
		}
	}
}

// Scope writes the instrumentation scope. The schema URL is not part of it: it belongs to the scope's container.
func Scope(s instrumentation.Scope, to pcommon.InstrumentationScope) {
	to.SetName(s.Name)
	to.SetVersion(s.Version)
}

// set writes the attributes of a set.
func set(s attribute.Set, to pcommon.Map) {
	to.EnsureCapacity(s.Len())
	for all := s.Iter(); all.Next(); {
		kv := all.Attribute()
		put(kv.Key, kv.Value, to)
	}
}

// moment converts a time. A time before 1970, such as the zero time, becomes 0, which means unknown.
func moment(t time.Time) pcommon.Timestamp { return pcommon.Timestamp(max(0, t.UnixNano())) }

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

// Record appends an event as a log record with an event name, observed now. span is the span of the event, or invalid.
func Record(e emit.Event, span trace.SpanContext, to plog.LogRecordSlice) {
	record := to.AppendEmpty()
	record.SetEventName(e.Name)
	record.SetTimestamp(moment(e.Time))
	record.SetObservedTimestamp(moment(time.Now()))
	number, name := severity(e.Severity)
	record.SetSeverityNumber(number)
	record.SetSeverityText(name)
	if e.Body != "" {
		record.Body().SetStr(e.Body)
	}
	Attributes(e.Attributes, record.Attributes())
	if span.IsValid() {
		record.SetTraceID(pcommon.TraceID(span.TraceID()))
		record.SetSpanID(pcommon.SpanID(span.SpanID()))
		record.SetFlags(plog.LogRecordFlags(span.TraceFlags()))
	}
}

func severity(s emit.Severity) (plog.SeverityNumber, string) {
	switch s {
	case emit.Error:
		return plog.SeverityNumberError, s.String()
	case emit.Warn:
		return plog.SeverityNumberWarn, s.String()
	}
	return plog.SeverityNumberInfo, s.String()
}
