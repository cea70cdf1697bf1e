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
func (r *stallspanReceiver) observe(m *monitor.Monitor, client *windows.Client) (*metadata.TelemetryBuilder, error) {
	b, err := metadata.NewTelemetryBuilder(r.settings.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	own := attribute.String("receiver", r.settings.ID.String())
	attributes := metric.WithAttributeSet(attribute.NewSet(own))
	err = errors.Join(
		b.RegisterReceiverStallspanReadingsLateCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(int64(m.Late()), attributes)
			return nil
		}),
		b.RegisterReceiverStallspanReadingsFailedCallback(func(_ context.Context, o metric.Int64Observer) error {
			for source, failure := range m.Failures() {
				o.Observe(int64(failure.Count),
					metric.WithAttributeSet(attribute.NewSet(own, attribute.String("source", source))))
			}
			return nil
		}),
		b.RegisterReceiverStallspanPanicsCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(int64(sample.Panics()), attributes)
			return nil
		}),
		b.RegisterReceiverStallspanWindowsOpenCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(int64(client.Open()), attributes)
			return nil
		}),
		b.RegisterReceiverStallspanExportDroppedCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(r.spans.lost()+r.records.lost(), attributes)
			return nil
		}),
	)
	if err != nil {
		b.Shutdown()
		return nil, err
	}
	return b, nil
}
