//go:build linux && (amd64 || arm64)

package receiver

import (
	"context"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/internal/alert"
	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/emit/otlp"
	"github.com/stallspan/stallspan/internal/emit/queue"
)

// onEvent makes a log record of an event of the machine, unless the config excludes its device. An I/O storm concerns
// windows, whatever disks the config selects.
func (r *stallspanReceiver) onEvent(e alert.Event) {
	excluded := e.GPU != nil && !r.devices.includesGPU(e.GPU) || e.Disk != "" && !r.devices.disks.includes(e.Disk)
	if e.Kind == alert.IOStorm || !excluded {
		r.postEvent(emit.Happened(e), trace.SpanContext{})
	}
}

// postEvent queues an event for the logs pipeline and keeps it for the API. within is the span that it belongs to.
func (r *stallspanReceiver) postEvent(e emit.Event, within trace.SpanContext) {
	e = e.Identified(within)
	r.records.push(e, bareSpanBytes+queue.AttributeBytes(e.Attributes))
	r.board.Post(alert.Posted{Line: e.JSON(), Client: e.Client, Lane: e.Lane()})
}

// addLogs makes next the consumer of the events.
func (r *stallspanReceiver) addLogs(set receiver.Settings, next consumer.Logs) error {
	report, err := newObsReport(set)
	if err != nil {
		return err
	}
	scope := emit.Scope(set.BuildInfo.Version)
	r.records = newOutput("log records", set.Logger, func(ctx context.Context, batch []emit.Event) error {
		logs := plog.NewLogs()
		resource := logs.ResourceLogs().AppendEmpty()
		otlp.Attributes(r.resource, resource.Resource().Attributes())
		records := resource.ScopeLogs().AppendEmpty()
		otlp.Scope(scope, records.Scope())
		records.SetSchemaUrl(scope.SchemaURL)
		for i := range batch {
			otlp.Record(batch[i], batch[i].Span, records.LogRecords())
		}
		n := logs.LogRecordCount() // before the consumer may change it
		ctx = report.StartLogsOp(ctx)
		err := next.ConsumeLogs(ctx, logs)
		report.EndLogsOp(ctx, format, n, err)
		return err
	})
	return nil
}

// format names the form of the input in the Collector's own telemetry.
const format = "stallspan"

func newObsReport(set receiver.Settings) (*receiverhelper.ObsReport, error) {
	return receiverhelper.NewObsReport(receiverhelper.ObsReportSettings{
		ReceiverID: set.ID, Transport: "http", ReceiverCreateSettings: set,
	})
}
