package semconv

// Span describes a type of span.
type Span struct {
	Type       string         // name in the registry; no attribute of the span
	Client     bool           // its kind is client if the other party is known, and else internal
	Attributes []AttributeRef // all keys of such spans
}

// Event describes a type of event.
type Event struct {
	Name       string
	Attributes []AttributeRef // all keys of such events
}
