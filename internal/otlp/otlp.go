// Package otlp writes what emit makes into the Collector's pdata. It is the only place where one becomes the other, and
// it knows no metric, attribute or event by name.
//
// What it writes is what the SDK's exporters write of the same, but for text that is no UTF-8, which they refuse: such
// bytes become U+FFFD here. Its functions may be called by several goroutines at once, for different destinations.
package otlp

import (
	"strings"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
)

// Attributes sets each attribute on to. One that is there already under the same key is replaced. One without a key is
// left out: OTLP has none such.
func Attributes(attrs []attribute.KeyValue, to pcommon.Map) {
	to.EnsureCapacity(to.Len() + len(attrs))
	for i := range attrs {
		put(attrs[i].Key, attrs[i].Value, to)
	}
}

// put is Attributes for one. What most attributes are needs no pcommon.Value of its own.
func put(key attribute.Key, v attribute.Value, to pcommon.Map) {
	if key == "" {
		return
	}
	name := text(string(key))
	switch v.Type() {
	case attribute.STRING:
		to.PutStr(name, text(v.AsString()))
	case attribute.INT64:
		to.PutInt(name, v.AsInt64())
	case attribute.FLOAT64:
		to.PutDouble(name, v.AsFloat64())
	case attribute.BOOL:
		to.PutBool(name, v.AsBool())
	default:
		value(v, to.PutEmpty(name))
	}
}

// Scope describes who emitted. The scope's schema URL has its place beside the scope, not in it.
func Scope(s instrumentation.Scope, to pcommon.InstrumentationScope) {
	to.SetName(text(s.Name))
	to.SetVersion(text(s.Version))
	set(s.Attributes, to.Attributes())
}

// set is Attributes of a set.
func set(s attribute.Set, to pcommon.Map) {
	to.EnsureCapacity(s.Len())
	for all := s.Iter(); all.Next(); {
		kv := all.Attribute()
		put(kv.Key, kv.Value, to)
	}
}

// text replaces what is no UTF-8: protobuf refuses a whole batch for one wrong byte.
func text(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// moment is t in nanoseconds since 1970: 0, which stands for unknown, where t is before that, as the zero time is.
func moment(t time.Time) pcommon.Timestamp { return pcommon.Timestamp(max(0, t.UnixNano())) }
