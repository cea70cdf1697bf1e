package otlp

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/otel/attribute"
)

// value writes a value of any type to an empty one. An unknown type stays empty.
func value(v attribute.Value, to pcommon.Value) {
	switch v.Type() {
	case attribute.STRING:
		to.SetStr(v.AsString())
	case attribute.INT64:
		to.SetInt(v.AsInt64())
	case attribute.FLOAT64:
		to.SetDouble(v.AsFloat64())
	case attribute.BOOL:
		to.SetBool(v.AsBool())
	case attribute.BYTESLICE:
		to.SetEmptyBytes().FromRaw(v.AsByteSlice())
	case attribute.STRINGSLICE:
		each(v.AsStringSlice(), to, func(s string, to pcommon.Value) { to.SetStr(s) })
	case attribute.INT64SLICE:
		each(v.AsInt64Slice(), to, func(n int64, to pcommon.Value) { to.SetInt(n) })
	case attribute.FLOAT64SLICE:
		each(v.AsFloat64Slice(), to, func(x float64, to pcommon.Value) { to.SetDouble(x) })
	case attribute.BOOLSLICE:
		each(v.AsBoolSlice(), to, func(b bool, to pcommon.Value) { to.SetBool(b) })
	case attribute.SLICE:
		each(v.AsSlice(), to, value)
	case attribute.MAP:
		Attributes(v.AsMap(), to.SetEmptyMap())
	case attribute.EMPTY:
	}
}

// each writes a list.
func each[T any](all []T, to pcommon.Value, write func(T, pcommon.Value)) {
	list := to.SetEmptySlice()
	list.EnsureCapacity(len(all))
	for _, x := range all {
		write(x, list.AppendEmpty())
	}
}
