package emit

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
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

// Bounds of an Event in JSON. Longer values are cut.
const (
	maxTextBytes  = 1 << 10
	maxAttributes = 64
)

// EventJSON is an Event in JSON: in GET /v1/events, in webhooks and on the standard input of programs. Texts come from
// devices and programs, and may hold any UTF-8.
type EventJSON struct {
	ID         string         `json:"id"`
	Name       string         `json:"name"`
	Severity   string         `json:"severity"` // "INFO", "WARN", "ERROR"
	Time       time.Time      `json:"time"`     // when the condition began or ended
	Resolved   bool           `json:"resolved"` // the condition has ended
	Test       bool           `json:"test"`     // a test event
	Body       string         `json:"body"`     // one sentence
	TraceID    string         `json:"trace_id,omitempty"`
	SpanID     string         `json:"span_id,omitempty"`
	Attributes map[string]any `json:"attributes"` // those of the log record
}

// Identified returns the event with a new ID and the span that it happened in, which may be invalid.
func (e Event) Identified(span trace.SpanContext) Event {
	e.ID, e.Span = rand.Text(), span
	return e
}

// ForJSON returns the form for JSON.
func (e *Event) ForJSON() EventJSON {
	j := EventJSON{
		ID: e.ID, Name: e.Name, Severity: e.Severity.String(), Time: e.Time.UTC(), Body: cut(e.Body),
		Resolved: e.Resolved(), Test: e.Test(), Attributes: map[string]any{},
	}
	if e.Span.IsValid() {
		j.TraceID, j.SpanID = e.Span.TraceID().String(), e.Span.SpanID().String()
	}
	for _, kv := range e.Attributes[:min(len(e.Attributes), maxAttributes)] {
		j.Attributes[cut(string(kv.Key))] = cutValue(kv.Value)
	}
	return j
}

// JSON returns the event as one line of JSON. If an attribute is a number that JSON cannot hold, it leaves out all
// attributes.
func (e *Event) JSON() []byte {
	j := e.ForJSON()
	line, err := encode(j)
	if err != nil {
		j.Attributes = nil
		line, _ = encode(j) // texts never fail
	}
	return line
}

func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return b.Bytes(), err
}

func cutValue(v attribute.Value) any {
	switch v.Type() {
	case attribute.STRING:
		return cut(v.AsString())
	case attribute.STRINGSLICE:
		list := v.AsStringSlice() // a copy
		for i := range list {
			list[i] = cut(list[i])
		}
		return list[:min(len(list), maxAttributes)]
	}
	return v.AsInterface()
}

// cut limits the length of a text and replaces invalid UTF-8.
func cut(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), maxTextBytes)], "\uFFFD")
}

// Resolved reports whether the event is the end of a condition.
func (e *Event) Resolved() bool { return e.isSet(semconv.EventResolvedKey) }

// Test reports whether the event is a test.
func (e *Event) Test() bool { return e.isSet(semconv.EventTestKey) }

func (e *Event) isSet(key attribute.Key) bool {
	for _, kv := range e.Attributes {
		if kv.Key == key {
			return kv.Value.AsBool()
		}
	}
	return false
}

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
	e := Event{Name: j.Name, Time: j.Time, Severity: Warn, Body: Clean(j.Body), Client: reporter}
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
		return ref.Key.String(Clean(value)), ref.Type == attribute.STRING
	case float64: // as any number in JSON
		whole := value == math.Trunc(value) && math.Abs(value) < 1<<53
		return ref.Key.Int64(int64(value)), ref.Type == attribute.INT64 && whole
	}
	return kv, false
}

// Clean limits the length of a text, and replaces invalid UTF-8 and control characters, which a variable cannot hold or
// a terminal would interpret.
func Clean(text string) string {
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
