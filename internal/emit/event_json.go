package emit

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

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
