package semconv

// Span describes a type of span. All spans are of kind internal.
type Span struct {
	Type       string         // name in the registry; no attribute of the span
	Attributes []AttributeRef // all keys of such spans
}

// Event describes a type of event.
type Event struct {
	Name       string
	Attributes []AttributeRef // all keys of such events
}
