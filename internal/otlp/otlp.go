// Package otlp writes what emit makes into the Collector's pdata. It is the only place where one becomes the other, and
// it knows no metric, attribute or event by name.
package otlp

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/internal/emit"
)

// Attributes sets each attribute on to. One that is there already under the same key is replaced.
func Attributes(attrs []attribute.KeyValue, to pcommon.Map) {}

// Scope describes who emitted.
func Scope(s instrumentation.Scope, to pcommon.InstrumentationScope) {}

// Metrics appends a scope's metrics.
func Metrics(m metricdata.ScopeMetrics, to pmetric.ResourceMetrics) {}

// Span appends a span that has the context own, and below it its children, each with a new span id. parent may be
// invalid: the span is then a root.
func Span(s emit.Span, own, parent trace.SpanContext, to ptrace.SpanSlice) {}

// Children appends spans, each with a new span id, below a span that the Collector has already.
func Children(spans []emit.Span, parent ptrace.Span, to ptrace.SpanSlice) {}

// Events appends events to a span.
func Events(events []emit.Event, to ptrace.SpanEventSlice) {}

// Record appends an event as a log record with an event name; span is the one that it happened in, or invalid.
func Record(e emit.Event, span trace.SpanContext, to plog.LogRecordSlice) {}
