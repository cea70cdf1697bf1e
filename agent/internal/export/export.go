// Package export sends the agent's spans, metrics and log records through the OpenTelemetry SDK.
//
// The standard OTEL_* variables configure it. A signal is exported over OTLP if an endpoint is set for it. Otherwise
// the signal needs no connection and no goroutine.
//
// The OTLP exporters are the SDK's, with their retries off: spans and log records wait in our queues (package queue),
// so that a backend may be away for hours. The SDK reads and checks the environment. What it reports goes to
// Options.Report; failed exports are kept for Stats.
package export

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/log"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/internal/emit"
)

// Options is the configuration that the environment does not hold.
type Options struct {
	Version string // of the program, for the scope of all signals
	Root    string // the folder that is the host's "/": "/hostfs" in a container, usually ""

	// Collect returns the metrics of this moment. One goroutine at a time calls it, once an interval and once during
	// Close. Without it no metrics are exported.
	Collect func() metricdata.ScopeMetrics

	// Jobs returns the metrics of jobs that the last Collect has made, each for a resource of its own; nil for none.
	Jobs func() []emit.JobMetrics

	// Logs exports events as log records.
	Logs bool

	// Report gets one line for each error that the SDK reports, such as a variable that it cannot parse.
	Report func(line string)
}

// Exporter exports spans, metrics and log records. It is safe for concurrent use.
type Exporter struct {
	collect func() metricdata.ScopeMetrics
	jobs    jobs

	tracers *sdktrace.TracerProvider // nil if no spans are exported, as are the next two
	tracer  trace.Tracer
	spans   *spanProcessor

	meters     *sdkmetric.MeterProvider // nil if no metrics are exported
	lastExport atomic.Pointer[error]    // of metrics. Only the newest counts: its counters hold those of earlier ones

	loggers *sdklog.LoggerProvider // nil if no log records are exported, as are the next two
	logger  log.Logger
	records *logProcessor

	closeIdle []func() // close the idle connections of HTTP clients

	close sync.Once
	final Stats
}

// New begins to export what the environment selects. It makes no connection itself, so a backend that is down is no
// error. An error is one line that names the variable.
func New(ctx context.Context, o Options) (*Exporter, error) {
	e := &Exporter{collect: o.Collect, jobs: jobs{of: o.Jobs}}
	var selected []signal
	for _, s := range []signal{traces, metrics, logs} {
		if s == metrics && o.Collect == nil || s == logs && !o.Logs {
			continue
		}
		if on, other := s.exported(); on {
			selected = append(selected, s)
		} else if other != "" && o.Report != nil {
			o.Report(fmt.Sprintf("no %s are exported: %s is %.40q, and only otlp is possible here",
				s.lower(), s.exporterVariable(), other))
		}
	}
	if len(selected) == 0 {
		return e, nil
	}
	report := reportErrors(o.Report)
	for _, s := range selected {
		if err := s.checkScheme(); err != nil { // at once, and not after the flush at the end
			return nil, err
		}
		s.reportIgnored(report)
	}
	if err := e.open(ctx, o, selected); err != nil {
		canceled, cancel := context.WithCancel(ctx)
		cancel()
		e.Close(canceled)
		return nil, err
	}
	return e, nil
}

func (e *Exporter) open(ctx context.Context, o Options, selected []signal) error {
	res, err := Resource(ctx, o.Root)
	if err != nil {
		return fmt.Errorf("cannot describe this program to OpenTelemetry: %w", err)
	}
	open := map[signal]func(context.Context, Options, *resource.Resource) error{
		traces: e.openSpans, metrics: e.openMetrics, logs: e.openLogs,
	}
	for _, s := range selected {
		if err := open[s](ctx, o, res); err != nil {
			return fmt.Errorf("cannot export %s over OTLP: %w", s.lower(), err)
		}
	}
	return nil
}

func (e *Exporter) openSpans(ctx context.Context, o Options, res *resource.Resource) error {
	exporter, err := e.newSpanExporter(ctx)
	if err != nil {
		return err
	}
	e.spans = newSpanProcessor(exporter, res)
	e.tracers = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(e.spans), sdktrace.WithResource(withProcess(res)))
	scope := emit.Scope(o.Version)
	e.tracer = e.tracers.Tracer(scope.Name,
		trace.WithInstrumentationVersion(scope.Version), trace.WithSchemaURL(scope.SchemaURL))
	return nil
}

func (e *Exporter) openLogs(ctx context.Context, o Options, res *resource.Resource) error {
	exporter, err := e.newLogExporter(ctx)
	if err != nil {
		return err
	}
	e.records = &logProcessor{newBatcher(exporter.Export, exporter.Shutdown, maxRecordBytes)}
	e.loggers = sdklog.NewLoggerProvider(sdklog.WithProcessor(e.records), sdklog.WithResource(res))
	scope := emit.Scope(o.Version)
	e.logger = e.loggers.Logger(scope.Name,
		log.WithInstrumentationVersion(scope.Version), log.WithSchemaURL(scope.SchemaURL))
	return nil
}

// Flush exports what is there now and returns when it has left, or with ctx's error. Spans and log records that the
// backend refuses count as gone; the Stats of Close hold them.
func (e *Exporter) Flush(ctx context.Context) error {
	var metricErr, logErr, spanErr error
	var all sync.WaitGroup
	if e.records != nil {
		all.Go(func() { logErr = e.records.ForceFlush(ctx) })
	}
	if e.meters != nil {
		all.Go(func() { metricErr = cmp.Or(e.meters.ForceFlush(ctx), e.metricError()) })
	}
	if e.spans != nil {
		spanErr = e.spans.ForceFlush(ctx)
	}
	all.Wait()
	return cmp.Or(spanErr, logErr, metricErr)
}

// Close exports what is queued, and the metrics a last time, until all has left or ctx ends, and stops everything.
// Spans that are still open are lost, so end them before. Later calls return the same Stats.
func (e *Exporter) Close(ctx context.Context) Stats {
	e.close.Do(func() {
		e.stop(ctx)
		e.final = e.stats()
	})
	return e.final
}

func (e *Exporter) stop(ctx context.Context) {
	var all sync.WaitGroup
	if e.records != nil {
		all.Go(func() { _ = e.records.Shutdown(ctx) }) // Stats hold the error
	}
	if e.meters != nil {
		all.Go(func() {
			if err := e.meters.Shutdown(ctx); err != nil && e.metricError() == nil {
				e.lastExport.Store(&err) // the reader gave up before the export
			}
		})
	}
	if e.spans != nil {
		_ = e.spans.Shutdown(ctx) // Stats hold the error
	}
	all.Wait()
	if e.tracers != nil {
		_ = e.tracers.Shutdown(context.WithoutCancel(ctx)) // the processor has stopped: nothing is left that could fail
	}
	if e.loggers != nil {
		_ = e.loggers.Shutdown(context.WithoutCancel(ctx))
	}
	for _, closeIdle := range e.closeIdle {
		closeIdle()
	}
}

// Resource describes this program and its machine. root is the folder that is the host's "/". Attributes of the
// environment win.
func Resource(ctx context.Context, root string) (*resource.Resource, error) {
	res, err := resource.New(ctx,
		resource.WithTelemetrySDK(), resource.WithAttributes(emit.Resource(root)...), resource.WithFromEnv())
	if err != nil && !errors.Is(err, resource.ErrPartialResource) { // the SDK reports a partial one by itself
		return nil, err
	}
	return res, nil
}

// withProcess adds the attributes of this process, which only spans have.
func withProcess(res *resource.Resource) *resource.Resource {
	all := append([]attribute.KeyValue{emit.OwnProcess()}, res.Attributes()...)
	return resource.NewWithAttributes(res.SchemaURL(), all...)
}
