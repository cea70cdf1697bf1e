// Package semconv holds every name that Stallspan emits: metrics, attributes with their values, spans and events.
//
// The names live in registry/*.yaml, in the format of OpenTelemetry's registry tooling. generated.go and the pages
// docs/metrics.md, docs/spans.md and docs/attributes.md are generated from them. Names that OpenTelemetry defines are
// used unchanged; all others begin with "stallspan.", which Go identifiers omit. Attribute keys end in Key, spans in
// Span and events in Event.
package semconv

import "go.opentelemetry.io/otel/attribute"

//go:generate go run ./internal/gen

// Kind is what a metric's points mean, in the terms of OTLP.
type Kind uint8

const (
	Counter       Kind = iota // a cumulative, monotonic sum
	UpDownCounter             // a cumulative sum that also falls
	Gauge                     // the present value, which has no sensible sum
	Histogram                 // a distribution of values
)

// String is the instrument's name in the registry.
func (k Kind) String() string {
	switch k {
	case Counter:
		return "counter"
	case UpDownCounter:
		return "updowncounter"
	case Gauge:
		return "gauge"
	case Histogram:
		return "histogram"
	}
	return "unknown"
}

// Metric describes one metric: what every stream of that name must look like.
type Metric struct {
	Name        string
	Unit        string // a UCUM code: "s", "By", "1"; "{operation}" counts things
	Description string
	Kind        Kind
	Int         bool           // points are int64, else float64
	Attributes  []AttributeRef // every key that a point may carry
}

// AttributeRef is an attribute in its place on a metric, span or event.
type AttributeRef struct {
	Key      attribute.Key
	Type     attribute.Type // of its value
	Required bool           // always there; any other is left out where it is not known
}
