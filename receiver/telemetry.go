package receiver

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/session"
	"github.com/stallspan/stallspan/receiver/internal/metadata"
)

// observe gives the Collector's own telemetry what this receiver tells of itself. Everything is counted elsewhere and
// looked at when it is asked for. Two receivers may share a monitor, so each says which it is.
func (w *watcher) observe(m *monitor.Monitor, windows *session.Session) (*metadata.TelemetryBuilder, error) {
	b, err := metadata.NewTelemetryBuilder(w.settings.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	own := attribute.String("receiver", w.settings.ID.String())
	mine := metric.WithAttributeSet(attribute.NewSet(own))
	err = errors.Join(
		b.RegisterReceiverStallspanReadingsLateCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(int64(m.Late()), mine)
			return nil
		}),
		b.RegisterReceiverStallspanReadingsFailedCallback(func(_ context.Context, o metric.Int64Observer) error {
			for source, failure := range m.Failures() {
				o.Observe(int64(failure.Count), metric.WithAttributeSet(attribute.NewSet(own, attribute.String("source", source))))
			}
			return nil
		}),
		b.RegisterReceiverStallspanWindowsOpenCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(int64(windows.Open()), mine)
			return nil
		}),
		b.RegisterReceiverStallspanWindowsLostCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(w.spans.lost()+w.records.lost(), mine)
			return nil
		}),
	)
	if err != nil {
		b.Shutdown()
		return nil, err
	}
	return b, nil
}
