package export

import (
	"slices"
	"strings"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
)

// Protobuf carries no text that is not UTF-8: one file name in another encoding would have its whole batch refused,
// by the library that should send it. Such bytes become U+FFFD.

func validText(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// validAttributes gives attrs itself where all its text is valid, as it nearly always is.
func validAttributes(attrs []attribute.KeyValue) []attribute.KeyValue {
	out := attrs
	for i, kv := range attrs {
		value, changed := validValue(kv.Value)
		if !changed && utf8.ValidString(string(kv.Key)) {
			continue
		}
		if &out[0] == &attrs[0] {
			out = slices.Clone(attrs)
		}
		out[i] = attribute.KeyValue{Key: attribute.Key(validText(string(kv.Key))), Value: value}
	}
	return out
}

func validValue(v attribute.Value) (valid attribute.Value, changed bool) {
	switch v.Type() {
	case attribute.STRING:
		if text := v.AsString(); !utf8.ValidString(text) {
			return attribute.StringValue(validText(text)), true
		}
	case attribute.STRINGSLICE:
		list := v.AsStringSlice()
		for i, text := range list {
			if !utf8.ValidString(text) {
				list[i], changed = validText(text), true
			}
		}
		if changed {
			return attribute.StringSliceValue(list), true
		}
	}
	return v, false
}
