package session

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

const traceparent = "traceparent"

// ParseTraceparent reads the text of a W3C traceparent, as programs pass it on in the variable TRACEPARENT
// ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"). A version that is newer than 00 may have more fields,
// which are left out.
func ParseTraceparent(text string) (trace.SpanContext, error) {
	carrier := propagation.MapCarrier{traceparent: strings.TrimSpace(text)}
	found := trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), carrier))
	if !found.IsValid() {
		return trace.SpanContext{}, fmt.Errorf("%.80q is not a traceparent: it has the form 00-(32 hex digits)-(16 hex digits)-01", text)
	}
	return found, nil
}

// Traceparent is a span's context in the same form, for a child to continue the trace; "" for an invalid one.
func Traceparent(c trace.SpanContext) string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(trace.ContextWithSpanContext(context.Background(), c), carrier)
	return carrier.Get(traceparent)
}

// Root is the context of the root of a new trace, sampled, with random ids.
func Root() trace.SpanContext {
	c := trace.SpanContextConfig{SpanID: newSpanID(), TraceFlags: trace.FlagsSampled | trace.FlagsRandom}
	for !c.TraceID.IsValid() {
		_, _ = rand.Read(c.TraceID[:]) // never fails, says its package
	}
	return trace.NewSpanContext(c)
}

// Child is the context of a new span below parent: in its trace, sampled where it is, with its trace state. Below an
// invalid one it is that of a new root.
func Child(parent trace.SpanContext) trace.SpanContext {
	if !parent.IsValid() {
		return Root()
	}
	return parent.WithSpanID(newSpanID()).WithRemote(false)
}

// Context returns the context of a new span below parent. A span that is not exported must not come between the spans of
// others, so it gets the context of its parent; without a parent it gets a new one, sampled.
func Context(parent trace.SpanContext, exported bool) trace.SpanContext {
	if !exported && parent.IsValid() {
		return parent
	}
	return Child(parent)
}

func newSpanID() (id trace.SpanID) {
	for !id.IsValid() {
		_, _ = rand.Read(id[:])
	}
	return id
}
