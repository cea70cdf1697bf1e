// Package notice is events in the form in which people and their programs get them: as lines of JSON, live and for a while
// after.
package notice

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/semconv"
)

// Notice is an event, with the span that it happened in. It is not changed once it is made.
type Notice struct {
	emit.Event
	ID   string            // tells it from all others
	Span trace.SpanContext // invalid where there is none
}

// New gives an event its ID.
func New(e emit.Event, span trace.SpanContext) *Notice {
	return &Notice{Event: e, ID: rand.Text(), Span: span}
}

// Bounds of a Notice in JSON. What is longer is cut.
const (
	mostText       = 1 << 10 // bytes of one text
	mostAttributes = 64
)

// Line is what a Notice is in JSON. Texts come from devices and programs, and may hold anything that UTF-8 can.
type Line struct {
	ID         string         `json:"id"`
	Name       string         `json:"name"`
	Severity   string         `json:"severity"` // "INFO", "WARN", "ERROR"
	Time       time.Time      `json:"time"`     // when it began, or was over
	Resolved   bool           `json:"resolved"` // it is over
	Test       bool           `json:"test"`     // nothing has happened
	Body       string         `json:"body"`     // one sentence
	TraceID    string         `json:"trace_id,omitempty"`
	SpanID     string         `json:"span_id,omitempty"`
	Attributes map[string]any `json:"attributes"` // as of the log record
}

// Line makes the form for JSON.
func (n *Notice) Line() Line {
	l := Line{
		ID: n.ID, Name: n.Name, Severity: n.Severity.String(), Time: n.Time.UTC(), Body: short(n.Body),
		Resolved: n.Resolved(), Test: n.Test(), Attributes: map[string]any{},
	}
	if n.Span.IsValid() {
		l.TraceID, l.SpanID = n.Span.TraceID().String(), n.Span.SpanID().String()
	}
	for i, kv := range n.Attributes {
		if i == mostAttributes {
			break
		}
		l.Attributes[short(string(kv.Key))] = plain(kv.Value)
	}
	return l
}

func plain(v attribute.Value) any {
	switch v.Type() {
	case attribute.STRING:
		return short(v.AsString())
	case attribute.STRINGSLICE:
		list := v.AsStringSlice()
		for i := range list { // the caller's own copy
			list[i] = short(list[i])
		}
		return list[:min(len(list), mostAttributes)]
	}
	return v.AsInterface()
}

// short cuts a text, and replaces what is no UTF-8.
func short(text string) string {
	if len(text) > mostText {
		text = text[:mostText]
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// JSON is the Notice as one line, with its end. A number that JSON does not have becomes none.
func (n *Notice) JSON() []byte {
	l := n.Line()
	text, err := line(l)
	if err != nil {
		l.Attributes = nil
		text, _ = line(l) // text alone always can
	}
	return text
}

func line(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return b.Bytes(), err
}

// Resolved says that the condition is over.
func (n *Notice) Resolved() bool { return n.is(semconv.EventResolvedKey) }

// Test says that somebody asked for the event and nothing has happened.
func (n *Notice) Test() bool { return n.is(semconv.EventTestKey) }

func (n *Notice) is(key attribute.Key) bool {
	for _, kv := range n.Attributes {
		if kv.Key == key {
			return kv.Value.AsBool()
		}
	}
	return false
}
