package export

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/log"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/internal/emit"
)

// maxRecordBytes bounds the log records that wait, by the estimate of recordSize: about 3,000 of the usual kind.
const maxRecordBytes = 4 << 20

// bareRecordBytes is what the SDK keeps of a log record without attributes, with our entry for it.
const bareRecordBytes = 640

// records is the queue of log records.
type records struct {
	*line[sdklog.Record]
}

// OnEmit implements sdklog.Processor. It never blocks.
func (q *records) OnEmit(_ context.Context, record *sdklog.Record) error {
	kept := record.Clone()
	q.push(kept, recordSize(&kept))
	return nil
}

// Enabled implements sdklog.Processor.
func (q *records) Enabled(context.Context, sdklog.EnabledParameters) bool { return true }

var _ sdklog.Processor = (*records)(nil)

func recordSize(r *sdklog.Record) int {
	n := bareRecordBytes + len(r.EventName()) + len(r.Body().AsString())
	r.WalkAttributes(func(kv attribute.KeyValue) bool {
		n += attributesSize([]attribute.KeyValue{kv})
		return true
	})
	return n
}

// openLogs begins to send log records by a route.
func (e *Exporter) openLogs(ctx context.Context, o Options, route *route, res *resource.Resource) error {
	exporter, hangUp, err := route.logExporter(ctx)
	if err != nil {
		return err
	}
	e.hangUps = append(e.hangUps, hangUp)
	e.records = &records{newLine(exporter.Export, exporter.Shutdown, maxRecordBytes)}
	e.loggers = sdklog.NewLoggerProvider(sdklog.WithProcessor(e.records), sdklog.WithResource(res))
	scope := emit.Scope(o.Version)
	e.logger = e.loggers.Logger(scope.Name, log.WithInstrumentationVersion(scope.Version), log.WithSchemaURL(scope.SchemaURL))
	return nil
}

// Log sends an event as a log record with an event name; span is the one that it happened in, or invalid. It never blocks,
// and does nothing when no log records leave.
func (e *Exporter) Log(event emit.Event, span trace.SpanContext) {
	if e.logger == nil {
		return
	}
	var r log.Record
	r.SetEventName(validText(event.Name))
	r.SetTimestamp(event.Time)
	r.SetObservedTimestamp(time.Now())
	number, name := severity(event.Severity)
	r.SetSeverity(number)
	r.SetSeverityText(name)
	if event.Body != "" {
		r.SetBody(attribute.StringValue(validText(event.Body)))
	}
	r.AddAttributes(validAttributes(event.Attributes)...)
	e.logger.Emit(trace.ContextWithSpanContext(context.Background(), span), r)
}

func severity(s emit.Severity) (log.Severity, string) {
	switch s {
	case emit.Error:
		return log.SeverityError, s.String()
	case emit.Warn:
		return log.SeverityWarn, s.String()
	}
	return log.SeverityInfo, s.String()
}

// Logs says whether log records leave.
func (e *Exporter) Logs() bool { return e.logger != nil }

// Dropped is how many spans and log records were pushed out of full queues by newer ones.
func (e *Exporter) Dropped() (n uint64) {
	if e.queue != nil {
		n += e.queue.counts().dropped
	}
	if e.records != nil {
		n += e.records.counts().dropped
	}
	return n
}

// LogsDropped is how many log records were pushed out by newer ones, or refused by the backend.
func (e *Exporter) LogsDropped() uint64 {
	if e.records == nil {
		return 0
	}
	c := e.records.counts()
	return c.dropped + c.refused
}
