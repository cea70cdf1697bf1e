package otlp

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/internal/emit"
)

// Record appends an event as a log record with an event name, observed now. span is the span of the event, or invalid.
func Record(e emit.Event, span trace.SpanContext, to plog.LogRecordSlice) {
	record := to.AppendEmpty()
	record.SetEventName(e.Name)
	record.SetTimestamp(moment(e.Time))
	record.SetObservedTimestamp(moment(time.Now()))
	number, name := severity(e.Severity)
	record.SetSeverityNumber(number)
	record.SetSeverityText(name)
	if e.Body != "" {
		record.Body().SetStr(e.Body)
	}
	Attributes(e.Attributes, record.Attributes())
	if span.IsValid() {
		record.SetTraceID(pcommon.TraceID(span.TraceID()))
		record.SetSpanID(pcommon.SpanID(span.SpanID()))
		record.SetFlags(plog.LogRecordFlags(span.TraceFlags()))
	}
}

func severity(s emit.Severity) (plog.SeverityNumber, string) {
	switch s {
	case emit.Error:
		return plog.SeverityNumberError, s.String()
	case emit.Warn:
		return plog.SeverityNumberWarn, s.String()
	}
	return plog.SeverityNumberInfo, s.String()
}
