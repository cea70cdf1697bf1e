package export

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/log"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/emit/queue"
)

// maxRecordBytes bounds the queued log records, by the estimate of recordSize: about 3,000 of the usual kind.
const maxRecordBytes = 4 << 20

// bareRecordBytes is the memory of a log record without attributes, with its entry in the queue.
const bareRecordBytes = 640

// logProcessor queues log records.
type logProcessor struct {
	*batcher[sdklog.Record]
}

var _ sdklog.Processor = logProcessor{}

// OnEmit implements sdklog.Processor. It never blocks.
func (p logProcessor) OnEmit(_ context.Context, record *sdklog.Record) error {
	kept := record.Clone()
	p.queue.Push(kept, recordSize(&kept))
	return nil
}

// Enabled implements sdklog.Processor.
func (p logProcessor) Enabled(context.Context, sdklog.EnabledParameters) bool { return true }

// recordSize estimates the memory of a queued log record.
func recordSize(r *sdklog.Record) int {
	n := bareRecordBytes + len(r.EventName()) + len(r.Body().AsString())
	r.WalkAttributes(func(kv attribute.KeyValue) bool {
		n += queue.AttributeBytes([]attribute.KeyValue{kv})
		return true
	})
	return n
}

// Log exports an event as a log record. span is the context of the span that the event belongs to, or invalid. It never
// blocks, and does nothing if no log records are exported.
func (e *Exporter) Log(event emit.Event, span trace.SpanContext) {
	if e.logger == nil {
		return
	}
	var r log.Record
	r.SetEventName(event.Name)
	r.SetTimestamp(event.Time)
	r.SetObservedTimestamp(time.Now())
	r.SetSeverity(severity(event.Severity))
	r.SetSeverityText(event.Severity.String())
	if event.Body != "" {
		r.SetBody(attribute.StringValue(event.Body))
	}
	r.AddAttributes(event.Attributes...)
	e.logger.Emit(trace.ContextWithSpanContext(context.Background(), span), r)
}

func severity(s emit.Severity) log.Severity {
	switch s {
	case emit.Error:
		return log.SeverityError
	case emit.Warn:
		return log.SeverityWarn
	}
	return log.SeverityInfo
}

// Logs reports whether log records are exported.
func (e *Exporter) Logs() bool { return e.logger != nil }
