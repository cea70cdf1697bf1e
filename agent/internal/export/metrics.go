package export

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"

	"github.com/stallspan/stallspan/internal/emit"
)

// metricInterval is our default of OTEL_METRIC_EXPORT_INTERVAL.
const metricInterval = 10 * time.Second

func (e *Exporter) openMetrics(ctx context.Context, _ Options, res *resource.Resource) error {
	exporter, err := e.newMetricExporter(ctx)
	if err != nil {
		return err
	}
	options := []sdkmetric.PeriodicReaderOption{sdkmetric.WithProducer(producer{e})}
	if lookup("OTEL_METRIC_EXPORT_INTERVAL") == "" {
		options = append(options, sdkmetric.WithInterval(metricInterval))
	}
	reader := sdkmetric.NewPeriodicReader(metricExporter{exporter, &e.lastExport, &e.jobs}, options...)
	e.meters = sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader), sdkmetric.WithResource(res))
	return nil
}

// producer passes the metrics of this moment to the SDK unchanged, with their own times, and keeps those of jobs.
type producer struct{ *Exporter }

// Produce implements sdkmetric.Producer.
func (p producer) Produce(context.Context) ([]metricdata.ScopeMetrics, error) {
	scope := p.collect()
	p.jobs.collect()
	if len(scope.Metrics) == 0 {
		return nil, nil
	}
	return []metricdata.ScopeMetrics{scope}, nil
}

// metricExporter keeps the outcome of each export for Stats. It hides errors from the reader, which would report each.
type metricExporter struct {
	sdkmetric.Exporter
	last *atomic.Pointer[error]
	jobs *jobs
}

// Export implements sdkmetric.Exporter. It blocks no longer than the exporter's timeout.
func (m metricExporter) Export(ctx context.Context, data *metricdata.ResourceMetrics) error {
	if len(data.ScopeMetrics) == 0 {
		return nil
	}
	err := m.Exporter.Export(ctx, data)
	for _, job := range m.jobs.resources(data.Resource) {
		if err == nil { // else the backend is away, and each call would wait for it
			err = m.Exporter.Export(ctx, &job)
		}
	}
	m.last.Store(&err)
	return nil
}

// jobs are the metrics of jobs as of the last collection. It is safe for concurrent use.
type jobs struct {
	of func() []emit.JobMetrics // nil for none

	mu     sync.Mutex
	newest []emit.JobMetrics
}

func (j *jobs) collect() {
	if j.of == nil {
		return
	}
	newest := j.of()
	j.mu.Lock()
	defer j.mu.Unlock()
	j.newest = newest
}

// resources returns the metrics of each job, with the resource of the machine and the job's attributes.
func (j *jobs) resources(machine *resource.Resource) (all []metricdata.ResourceMetrics) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := range j.newest {
		job := &j.newest[i]
		if len(job.Metrics.Metrics) > 0 {
			own := resource.NewWithAttributes(machine.SchemaURL(), job.Resource(machine.Attributes())...)
			all = append(all, metricdata.ResourceMetrics{Resource: own, ScopeMetrics: []metricdata.ScopeMetrics{job.Metrics}})
		}
	}
	return all
}
