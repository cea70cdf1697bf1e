package receiver

import (
	"go.opentelemetry.io/otel/attribute"

	"github.com/stallspan/stallspan/internal/emit"
)

// What things take in memory beside their text, in bytes, on the large side.
const (
	bareBytes  = 256 // a span or an event
	valueBytes = 128 // an attribute
	textBytes  = 16  // a text in a list
)

// size estimates what a span that waits takes in memory, in bytes.
func size(s *emit.Span) int {
	n := bareBytes + len(s.Name) + sizeOf(s.Attributes)
	for i := range s.Events {
		n += sizeOf(s.Events[i].Attributes)
	}
	for i := range s.Children {
		n += size(&s.Children[i])
	}
	return n
}

// sizeOf is that of attributes, and of what they are on.
func sizeOf(all []attribute.KeyValue) int {
	n := bareBytes + valueBytes*len(all)
	for i := range all {
		switch v := all[i].Value; v.Type() {
		case attribute.STRING:
			n += len(v.AsString())
		case attribute.STRINGSLICE:
			for _, text := range v.AsStringSlice() {
				n += textBytes + len(text)
			}
		}
	}
	return n
}
