// Package otlp converts the telemetry of package emit to the Collector's pdata. It uses no metric, attribute or event
// by name.
//
// The result equals what the SDK's exporters send, to the byte. Text must be valid UTF-8, as that of emit is. The
// functions are safe for concurrent use with different destinations.
package otlp

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
)

// Attributes sets each attribute on to. It replaces values of the same key, and leaves out attributes without a key,
// which OTLP does not have.
func Attributes(attrs []attribute.KeyValue, to pcommon.Map) {
	to.EnsureCapacity(to.Len() + len(attrs))
	for i := range attrs {
		put(attrs[i].Key, attrs[i].Value, to)
	}
}

// put sets one attribute. The most frequent types need no pcommon.Value of their own.
func put(key attribute.Key, v attribute.Value, to pcommon.Map) {
	if key == "" {
		return
	}
	name := string(key)
	switch v.Type() {
	case attribute.STRING:
		to.PutStr(name, v.AsString())
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

// Scope writes the instrumentation scope. The schema URL is not part of it: it belongs to the scope's container.
func Scope(s instrumentation.Scope, to pcommon.InstrumentationScope) {
	to.SetName(s.Name)
	to.SetVersion(s.Version)
	set(s.Attributes, to.Attributes())
}

// set writes the attributes of a set.
func set(s attribute.Set, to pcommon.Map) {
	to.EnsureCapacity(s.Len())
	for all := s.Iter(); all.Next(); {
		kv := all.Attribute()
		put(kv.Key, kv.Value, to)
	}
}

// moment converts a time. A time before 1970, such as the zero time, becomes 0, which means unknown.
func moment(t time.Time) pcommon.Timestamp { return pcommon.Timestamp(max(0, t.UnixNano())) }
