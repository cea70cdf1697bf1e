package emit

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

const traceparent = "traceparent"

// ParseTraceparent parses a W3C traceparent, like the environment variable TRACEPARENT of programs
// ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"). It ignores the additional fields of versions after 00.
func ParseTraceparent(text string) (trace.SpanContext, error) {
	carrier := propagation.MapCarrier{traceparent: strings.TrimSpace(text)}
	found := trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), carrier))
	if !found.IsValid() {
		return trace.SpanContext{}, fmt.Errorf(
			"%.80q is not a traceparent: the form is 00-(32 hex digits)-(16 hex digits)-01", text)
	}
	return found, nil
}

// Traceparent returns the context of a span in the same form, for a child to continue the trace; "" for an invalid one.
func Traceparent(c trace.SpanContext) string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(trace.ContextWithSpanContext(context.Background(), c), carrier)
	return carrier.Get(traceparent)
}

// RootContext returns the context of the root of a new trace: sampled, with random ids.
func RootContext() trace.SpanContext {
	c := trace.SpanContextConfig{SpanID: newSpanID(), TraceFlags: trace.FlagsSampled | trace.FlagsRandom}
	for !c.TraceID.IsValid() {
		_, _ = rand.Read(c.TraceID[:]) // never fails
	}
	return trace.NewSpanContext(c)
}

// ChildContext returns the context of a new child of parent: in its trace, sampled if it is, with its trace state. If
// parent is invalid, it returns that of a new root.
func ChildContext(parent trace.SpanContext) trace.SpanContext {
	if !parent.IsValid() {
		return RootContext()
	}
	return parent.WithSpanID(newSpanID()).WithRemote(false)
}

// SpanContext returns the context of a new span below parent. A span that is not exported must not come between the
// spans of others, so it gets the context of its parent; without a parent it gets a new one, sampled.
func SpanContext(parent trace.SpanContext, exported bool) trace.SpanContext {
	if !exported && parent.IsValid() {
		return parent
	}
	return ChildContext(parent)
}

func newSpanID() (id trace.SpanID) {
	for !id.IsValid() {
		_, _ = rand.Read(id[:])
	}
	return id
}
