package export

import (
	"context"
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

// Traceparent is the span's context in the same form, for a child to continue the trace; "" for a nil *Open.
func (o *Open) Traceparent() string {
	carrier := propagation.MapCarrier{}
	ctx := trace.ContextWithSpanContext(context.Background(), o.SpanContext())
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier.Get(traceparent)
}
