package emit

import (
	"fmt"
	"math"
	"strings"
	"time"
	"unicode"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/semconv"
)

// oldestReport is the largest age of a reported event: its time is that of the first stall of a window.
const oldestReport = 7 * 24 * time.Hour

// Reported returns the event of a slow window that another program has measured, and its span, which may be invalid.
// The program chooses texts and numbers, so only attributes of such an event are taken, each with its type. reporter is
// who it is, by what the kernel says.
func Reported(j *EventJSON, reporter string, now time.Time) (Event, trace.SpanContext, error) {
	if j.Name != semconv.WindowSlowEvent.Name {
		return Event{}, trace.SpanContext{}, fmt.Errorf("the event %.60q cannot be reported: only %s can", j.Name,
			semconv.WindowSlowEvent.Name)
	}
	e := Event{Name: j.Name, Time: j.Time, Severity: Warn, Body: clean(j.Body), Client: reporter}
	if age := now.Sub(e.Time); age < 0 || age > oldestReport {
		e.Time = now
	}
	for _, ref := range semconv.WindowSlowEvent.Attributes {
		if ref.Key == semconv.EventTestKey || ref.Key == semconv.EventReporterKey {
			continue
		}
		value, given := j.Attributes[string(ref.Key)]
		switch kv, ok := reportedValue(ref, value); {
		case given && !ok:
			return Event{}, trace.SpanContext{}, fmt.Errorf("the attribute %s has the wrong type: send it as in "+
				"GET /v1/events", ref.Key)
		case given:
			e.Attributes = append(e.Attributes, kv)
		case ref.Required:
			return Event{}, trace.SpanContext{}, fmt.Errorf("the attribute %s is missing", ref.Key)
		}
	}
	if kind, _ := j.Attributes[string(semconv.WindowKindKey)].(string); !window.Kind(kind).Valid() {
		return Event{}, trace.SpanContext{}, fmt.Errorf("%.60q is not a kind of window", kind)
	}
	e.Attributes = append(e.Attributes, semconv.EventReporterKey.String(UTF8(reporter)))
	return e, spanOf(j), nil
}

// reportedValue returns an attribute of the registered type.
func reportedValue(ref semconv.AttributeRef, value any) (kv attribute.KeyValue, ok bool) {
	switch value := value.(type) {
	case string:
		return ref.Key.String(clean(value)), ref.Type == attribute.STRING
	case float64: // as any number in JSON
		whole := value == math.Trunc(value) && math.Abs(value) < 1<<53
		return ref.Key.Int64(int64(value)), ref.Type == attribute.INT64 && whole
	}
	return kv, false
}

// clean is cut, with a space in place of each control character.
func clean(text string) string {
	return cut(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text))
}

// spanOf returns the span of an event, or an invalid one.
func spanOf(j *EventJSON) trace.SpanContext {
	id, err := trace.TraceIDFromHex(j.TraceID)
	if err != nil {
		return trace.SpanContext{}
	}
	span, err := trace.SpanIDFromHex(j.SpanID)
	if err != nil {
		return trace.SpanContext{}
	}
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: span, TraceFlags: trace.FlagsSampled})
}

// Reportable reports whether a server takes an event from another program.
func (e *Event) Reportable() bool { return e.Name == semconv.WindowSlowEvent.Name }
