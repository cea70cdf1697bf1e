package semconv

// Span describes one shape of span. All of them are of kind internal.
type Span struct {
	Type       string         // what the registry calls the shape; a span does not carry it
	Attributes []AttributeRef // every key that such a span may carry
}

// Event describes one named occurrence on a span.
type Event struct {
	Name       string
	Attributes []AttributeRef // every key that such an event may carry
}
