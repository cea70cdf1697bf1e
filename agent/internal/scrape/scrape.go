// Package scrape serves metrics to Prometheus, in its text format and in that of OpenMetrics. The names are those that
// an OTLP backend makes (github.com/prometheus/otlptranslator), so that the same rules and dashboards work.
package scrape

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
	semconv "go.opentelemetry.io/otel/semconv/v1.40.0"

	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/sample"
)

const (
	minInterval = time.Second // between two collections: what is scraped more often is the same again
	maxScrapes  = 4           // at a time; further ones get the status 503
	// repeatSlow is how long the span of a slow window is shown, so that each server that scrapes sees it.
	repeatSlow = 2 * time.Minute

	maxProblems = 10 // scrapes whose errors are reported
)

// Options are where the metrics come from.
type Options struct {
	Version  string
	Disabled []string // names of metrics
	Resource *resource.Resource
	Collect  func() sample.Snapshot
	Own      func() emit.Own

	Jobs      bool            // with the metrics of jobs, whose names are labels
	Durations *emit.Durations // of windows, whose labels are texts of their users; nil for none
}

// New returns the handler of GET /metrics. host.id and host.name are labels of all series, because rules distinguish
// machines by them; target_info has the other attributes of the resource.
func New(o Options) (http.Handler, error) {
	m := emit.NewMetrics(o.Version, o.Disabled...)
	m.Own, m.Durations, m.Nameless, m.RepeatSlow = o.Own, o.Durations, !o.Jobs, repeatSlow
	registry := prometheus.NewRegistry()
	reader, err := exporter.New(
		exporter.WithRegisterer(registry), exporter.WithProducer(&producer{metrics: m, collect: o.Collect}),
		exporter.WithoutScopeInfo(), exporter.WithResourceAsConstantLabels(attribute.NewAllowKeysFilter(
			semconv.HostIDKey, semconv.HostNameKey)))
	if err != nil {
		return nil, fmt.Errorf("metrics for Prometheus: %w", err)
	}
	metric.NewMeterProvider(metric.WithReader(reader), metric.WithResource(o.Resource)) // the reader collects for it
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		EnableOpenMetrics: true, MaxRequestsInFlight: maxScrapes,
		ErrorHandling: promhttp.ContinueOnError, ErrorLog: new(problems), // one bad series does not hide the others
	}), nil
}

// problems reports the first errors to OpenTelemetry's error handler. A text has the value of a series, so that each
// scrape has another one.
type problems struct{ n atomic.Int64 }

func (p *problems) Println(v ...any) {
	if p.n.Add(1) <= maxProblems {
		otel.Handle(errors.New("/metrics: " + strings.TrimSpace(fmt.Sprintln(v...))))
	}
}

// producer hands out metrics. Utilization, await and queue depth are differences since the last collection, so it
// collects at most once a second, however many servers scrape.
type producer struct {
	collect func() sample.Snapshot

	mu      sync.Mutex
	metrics *emit.Metrics
	last    metricdata.ScopeMetrics
	at      time.Time
}

func (p *producer) Produce(context.Context) ([]metricdata.ScopeMetrics, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := time.Now(); p.at.IsZero() || now.Sub(p.at) >= minInterval {
		scope := p.metrics.Collect(p.collect())
		scope.Metrics = classic(withJobs(scope.Metrics, p.metrics.Jobs()))
		p.last, p.at = scope, now
	}
	return []metricdata.ScopeMetrics{p.last}, nil
}

// withJobs adds the points of jobs, with the attributes of the job's resource as labels: Prometheus has one resource
// for all that a server returns.
func withJobs(all []metricdata.Metrics, jobs []emit.JobMetrics) []metricdata.Metrics {
	for _, job := range jobs {
		for _, m := range job.Metrics.Metrics {
			switch of := m.Data.(type) {
			case metricdata.Sum[float64]:
				all = withJob(all, m, of, job.Attributes)
			case metricdata.Sum[int64]:
				all = withJob(all, m, of, job.Attributes)
			} // latencies would be too many series (ADR 0057)
		}
	}
	return all
}

// withJob adds the points of one metric of a job.
func withJob[N int64 | float64](all []metricdata.Metrics, m metricdata.Metrics, of metricdata.Sum[N],
	attributes []attribute.KeyValue,
) []metricdata.Metrics {
	for i := range of.DataPoints {
		p := &of.DataPoints[i]
		p.Attributes = attribute.NewSet(append(attributes[:len(attributes):len(attributes)],
			p.Attributes.ToSlice()...)...)
	}
	i := slices.IndexFunc(all, func(x metricdata.Metrics) bool { return x.Name == m.Name })
	if i < 0 {
		m.Data = of
		return append(all, m)
	}
	sum, _ := all[i].Data.(metricdata.Sum[N])
	sum.DataPoints = append(sum.DataPoints, of.DataPoints...)
	all[i].Data = sum
	return all
}
