package queue

import (
	"reflect"

	"go.opentelemetry.io/otel/attribute"
)

var (
	keyValueBytes = int(reflect.TypeFor[attribute.KeyValue]().Size())
	stringBytes   = int(reflect.TypeFor[string]().Size())
)

// AttributeBytes estimates the memory of attributes. It errs on the large side: text counts for each attribute, though
// many attributes share theirs.
func AttributeBytes(attrs []attribute.KeyValue) int {
	n := len(attrs) * keyValueBytes
	for i := range attrs {
		switch v := attrs[i].Value; v.Type() {
		case attribute.BOOL, attribute.INT64, attribute.FLOAT64:
		case attribute.STRING:
			n += len(v.AsString())
		case attribute.STRINGSLICE:
			for _, text := range v.AsStringSlice() {
				n += stringBytes + len(text)
			}
		default: // lists of numbers: their text is longer than they are in memory
			n += 8 + 4*len(v.String())
		}
	}
	return n
}
