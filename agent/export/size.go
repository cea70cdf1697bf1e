package export

import (
	"reflect"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// What things take in memory besides their text, in bytes.
var (
	keyValueBytes = int(reflect.TypeFor[attribute.KeyValue]().Size())
	eventBytes    = int(reflect.TypeFor[sdktrace.Event]().Size())
	linkBytes     = int(reflect.TypeFor[sdktrace.Link]().Size())
	stringBytes   = int(reflect.TypeFor[string]().Size())
)

// bareSpanBytes is what the SDK keeps of an ended span without attributes, with our entry for it: names of scope and
// resource are shared.
const bareSpanBytes = 640

// spanSize estimates what a span that waits in the queue takes in memory, in bytes. It errs on the large side: texts
// count for each span though many are shared.
func spanSize(s sdktrace.ReadOnlySpan) int {
	n := bareSpanBytes + len(s.Name()) + attributesSize(s.Attributes())
	for _, e := range s.Events() {
		n += eventBytes + len(e.Name) + attributesSize(e.Attributes)
	}
	for _, l := range s.Links() {
		n += linkBytes + attributesSize(l.Attributes)
	}
	return n
}

func attributesSize(all []attribute.KeyValue) int {
	n := len(all) * keyValueBytes
	for i := range all {
		switch v := all[i].Value; v.Type() {
		case attribute.BOOL, attribute.INT64, attribute.FLOAT64:
		case attribute.STRING:
			n += len(v.AsString())
		case attribute.STRINGSLICE:
			for _, text := range v.AsStringSlice() {
				n += stringBytes + len(text)
			}
		default: // lists of numbers and what else there may be: their text is longer than they are
			n += 8 + 4*len(v.String())
		}
	}
	return n
}
