// Package semconv holds every name that Stallspan emits: metrics, attributes with their values, spans and events.
//
// The names live in registry/*.yaml, in the format of OpenTelemetry's registry tooling. generated.go, the pages
// docs/metrics.md, docs/spans.md and docs/attributes.md, and the metrics of receiver/metadata.yaml are generated from
// them. Names that OpenTelemetry defines are used unchanged; all others begin with "stallspan.", which Go identifiers
// omit. Attribute keys end in Key, and events in Event. Package test/signals has which attributes metrics and spans
// have, for tests.
package semconv

import "go.opentelemetry.io/otel/attribute"

// The receiver has no use for the builder of metrics that mdatagen makes: package emit serves the agent, too.
//
//go:generate ../hack/tool.sh semconv
//go:generate ../hack/tool.sh mdatagen ../receiver/metadata.yaml
//go:generate sh -c "cd ../receiver/internal/metadata && rm -r testdata generated_metrics*.go generated_config*.go"
//go:generate ../hack/tool.sh dashboards -root ..

// Kind is the kind of a metric, as in OTLP.
type Kind uint8

const (
	Counter       Kind = iota // a cumulative, monotonic sum
	UpDownCounter             // a cumulative sum that can fall
	Gauge                     // a current value that must not be added up
	Histogram                 // a distribution of values
)

// String returns the name of the instrument in the registry.
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

// Metric describes a metric.
type Metric struct {
	Name        string
	Unit        string // a UCUM code: "s", "By", "1"; "{operation}" counts things
	Description string
	Kind        Kind
	Int         bool // points are int64, else float64
	OptIn       bool // emitted only if the configuration enables it
}

// AttributeRef is an attribute of an event, and in tests of a metric or a span.
type AttributeRef struct {
	Key      attribute.Key
	Type     attribute.Type // of its value
	Required bool           // always present; others are absent if unknown
}

// Event describes a type of event.
type Event struct {
	Name       string
	Attributes []AttributeRef // all keys of such events
}
