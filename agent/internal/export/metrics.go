package export

import (
	"context"
	"sync"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// metricInterval is the time between two collections, unless OTEL_METRIC_EXPORT_INTERVAL says otherwise.
const metricInterval = 10 * time.Second

// readerOptions sets the interval, and leaves it to the SDK where the environment has one.
func readerOptions() ([]sdkmetric.PeriodicReaderOption, error) {
	const timeout, interval = "OTEL_METRIC_EXPORT_TIMEOUT", "OTEL_METRIC_EXPORT_INTERVAL"
	for _, variable := range []string{timeout, interval} {
		if value := lookup(variable); value != "" {
			if _, err := milliseconds(variable, value, 1); err != nil {
				return nil, err
			}
		}
	}
	if lookup(interval) != "" {
		return nil, nil
	}
	return []sdkmetric.PeriodicReaderOption{sdkmetric.WithInterval(metricInterval)}, nil
}

// producer hands readings to the SDK as they are, with their own times.
type producer func() metricdata.ScopeMetrics

// Produce implements sdkmetric.Producer.
func (p producer) Produce(context.Context) ([]metricdata.ScopeMetrics, error) {
	scope := p()
	if len(scope.Metrics) == 0 {
		return nil, nil
	}
	return []metricdata.ScopeMetrics{scope}, nil
}

// meter keeps the outcome of the last export, which is the one that counts: counters are cumulative, so it held what
// those before it held. It tells no error to the reader, who would print it.
type meter struct {
	sdkmetric.Exporter

	mu   sync.Mutex
	last error
}

// Export implements sdkmetric.Exporter. It blocks for no longer than the exporter's timeout.
func (m *meter) Export(ctx context.Context, data *metricdata.ResourceMetrics) error {
	if len(data.ScopeMetrics) == 0 {
		return nil
	}
	err := m.Exporter.Export(ctx, data)
	m.note(err)
	return nil
}

func (m *meter) note(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last = err
}

// err is the error of the last export, nil when it arrived.
func (m *meter) err() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last
}
