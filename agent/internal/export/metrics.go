package export

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/contrib/exporters/autoexport"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// metricInterval is our default of OTEL_METRIC_EXPORT_INTERVAL.
const metricInterval = 10 * time.Second

// newReader returns the metric reader that the environment selects.
func (e *Exporter) newReader(ctx context.Context, name string) (sdkmetric.Reader, error) {
	if name != otlp {
		autoexport.WithFallbackMetricProducer(func(context.Context) (sdkmetric.Producer, error) {
			return producer(e.collect), nil
		})
		return autoexport.NewMetricReader(ctx)
	}
	exporter, err := openOTLP(ctx, e, metrics, newGRPCMetricExporter, newHTTPMetricExporter)
	if err != nil {
		return nil, err
	}
	options := []sdkmetric.PeriodicReaderOption{sdkmetric.WithProducer(producer(e.collect))}
	if lookup("OTEL_METRIC_EXPORT_INTERVAL") == "" {
		options = append(options, sdkmetric.WithInterval(metricInterval))
	}
	return sdkmetric.NewPeriodicReader(metricExporter{exporter, &e.lastExport}, options...), nil
}

// producer passes the metrics of this moment to the SDK unchanged, with their own times.
type producer func() metricdata.ScopeMetrics

// Produce implements sdkmetric.Producer.
func (p producer) Produce(context.Context) ([]metricdata.ScopeMetrics, error) {
	scope := p()
	if len(scope.Metrics) == 0 {
		return nil, nil
	}
	return []metricdata.ScopeMetrics{scope}, nil
}

// metricExporter keeps the outcome of each export for Stats. It hides errors from the reader, which would report each.
type metricExporter struct {
	sdkmetric.Exporter
	last *outcome
}

// Export implements sdkmetric.Exporter. It blocks no longer than the exporter's timeout.
func (m metricExporter) Export(ctx context.Context, data *metricdata.ResourceMetrics) error {
	if len(data.ScopeMetrics) > 0 {
		m.last.set(m.Exporter.Export(ctx, data))
	}
	return nil
}

// outcome is the error of the newest export of metrics. Only this one counts: counters are cumulative, so an export
// holds everything that earlier exports held.
type outcome struct {
	mu  sync.Mutex
	err error
}

func (o *outcome) set(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.err = err
}

// get returns nil after a success.
func (o *outcome) get() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}
