// Package signals has what the registry of semconv says of metrics and spans beyond what the program needs: the
// attributes of each. Tests hold what is emitted against it.
package signals

import "github.com/stallspan/stallspan/semconv"

// Span describes a type of span.
type Span struct {
	Type       string // name in the registry; no attribute of the span
	Client     bool   // its kind is client if the other party is known, and else internal
	Attributes []semconv.AttributeRef
}
