//go:build linux && (amd64 || arm64)

package receiver

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/windows"
	"github.com/stallspan/stallspan/receiver/internal/metadata"
)

// observe registers this receiver's metrics with the Collector's own telemetry. The values are read when they are
// collected. Two receivers may share a monitor, so an attribute names the receiver.
func (r *stallspanReceiver) observe(m *monitor.Monitor, client *windows.Client) (metric.Registration, error) {
	meter := r.settings.MeterProvider.Meter(metadata.ScopeName)
	var all []metric.Observable
	var failed error
	counter := func(name, unit, what string) metric.Int64ObservableCounter {
		c, err := meter.Int64ObservableCounter("otelcol_receiver_stallspan_"+name, metric.WithUnit(unit),
			metric.WithDescription(what+" [Alpha]"))
		all, failed = append(all, c), errors.Join(failed, err)
		return c
	}
	panics := counter("panics", "{panic}",
		"Panics in this process that were caught. The part that failed pauses and starts again.")
	failures := counter("readings_failed", "{reading}", "Readings of a source that failed, completely or in part.")
	late := counter("readings_late", "{reading}", "Readings that were more than one sampling interval late.")
	lost := counter("windows_lost", "{item}",
		"Spans and log records of windows that were lost because the pipeline refused them or was too slow.")
	open, err := meter.Int64ObservableUpDownCounter("otelcol_receiver_stallspan_windows_open",
		metric.WithUnit("{window}"), metric.WithDescription("Open windows. [Alpha]"))
	if err := errors.Join(failed, err); err != nil {
		return nil, err
	}
	own := attribute.String("receiver", r.settings.ID.String())
	of := metric.WithAttributeSet(attribute.NewSet(own))
	return meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		o.ObserveInt64(panics, int64(sample.Panics()), of)
		for source, failure := range m.Failures() {
			o.ObserveInt64(failures, int64(failure.Count), metric.WithAttributes(own, attribute.String("source", source)))
		}
		o.ObserveInt64(late, int64(m.Late()), of)
		o.ObserveInt64(lost, r.spans.lost()+r.records.lost(), of)
		o.ObserveInt64(open, int64(client.Open()), of)
		return nil
	}, append(all, open)...)
}
