// Package export is everything that leaves the agent through OpenTelemetry: metrics through the SDK's PeriodicReader,
// spans and log records through its providers and queues of our own, all over OTLP, all of it set up by the standard OTEL_* variables.
//
// A signal leaves when an endpoint is set for it: OTEL_EXPORTER_OTLP_ENDPOINT for all, or the signal's own variable
// for that one alone. Without one there is no connection, no goroutine and no word about it, whatever else the
// environment says: the variables may be meant for the wrapped program. With one, a variable that cannot be followed
// is an error, because the SDK would complain on standard error in the middle of that program's output and go on with
// a default.
//
// The package sets none of OpenTelemetry's process-wide handlers. Nothing here reaches them: the environment is
// checked before the SDK reads it, and what goes wrong later is kept for Stats.
package export

import (
	"cmp"
	"context"
	"sync"

	"go.opentelemetry.io/otel/log"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/internal/emit"
)

// Options are what the environment does not say.
type Options struct {
	Version string // of the program, for the scope of all signals
	Root    string // the folder that stands for the host's "/": "/hostfs" in a container, "" otherwise

	// Collect gives the metrics of this moment. It is called by one goroutine at a time, once an interval and once
	// when the Exporter is closed. Without it no metrics leave.
	Collect func() metricdata.ScopeMetrics

	// Logs has events leave as log records, too. Without it none do, whatever the environment says.
	Logs bool
}

// Exporter sends spans and metrics. It is safe for concurrent use.
type Exporter struct {
	provider *sdktrace.TracerProvider // nil when no spans leave, as are the two below
	tracer   trace.Tracer
	queue    *queue

	meters *sdkmetric.MeterProvider // nil when no metrics leave, as is the one below
	meter  *meter

	loggers *sdklog.LoggerProvider // nil when no log records leave, as are the two below
	logger  log.Logger
	records *records

	hangUps []func() // drop the idle connections of HTTP

	close sync.Once
	final Stats
}

// New reads the environment and begins to export what it asks for. It makes no connection by itself, so a backend
// that is down is no error here. An error is one line that names the variable.
func New(ctx context.Context, o Options) (*Exporter, error) {
	spans, err := routeOf(traces)
	if err != nil {
		return nil, err
	}
	points, err := routeOf(metrics)
	if err != nil {
		return nil, err
	}
	if o.Collect == nil {
		points = nil
	}
	var events *route
	if o.Logs {
		if events, err = routeOf(logs); err != nil {
			return nil, err
		}
	}
	e := &Exporter{}
	if spans == nil && points == nil && events == nil {
		return e, nil
	}
	if err := e.open(ctx, o, spans, points, events); err != nil {
		gone, cancel := context.WithCancel(ctx)
		cancel()
		e.Close(gone)
		return nil, err
	}
	return e, nil
}

func (e *Exporter) open(ctx context.Context, o Options, spans, points, events *route) error {
	res, err := describe(ctx, o.Root)
	if err != nil {
		return err
	}
	if spans != nil {
		if err := checkSampler(); err != nil {
			return err
		}
		exporter, hangUp, err := spans.spanExporter(ctx)
		if err != nil {
			return err
		}
		e.hangUps = append(e.hangUps, hangUp)
		e.queue = newQueue(exporter, maxQueueBytes)
		e.provider = sdktrace.NewTracerProvider(
			sdktrace.WithSpanProcessor(e.queue), sdktrace.WithResource(ofProcess(res)))
		scope := emit.Scope(o.Version)
		e.tracer = e.provider.Tracer(scope.Name,
			trace.WithInstrumentationVersion(scope.Version), trace.WithSchemaURL(scope.SchemaURL))
	}
	if points != nil {
		interval, err := readerOptions()
		if err != nil {
			return err
		}
		exporter, hangUp, err := points.metricExporter(ctx)
		if err != nil {
			return err
		}
		e.hangUps = append(e.hangUps, hangUp)
		e.meter = &meter{Exporter: exporter}
		reader := sdkmetric.NewPeriodicReader(e.meter, append(interval, sdkmetric.WithProducer(producer(o.Collect)))...)
		e.meters = sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader), sdkmetric.WithResource(res))
	}
	if events != nil {
		return e.openLogs(ctx, o, events, res)
	}
	return nil
}

// Flush exports now what is there now, and returns when it has left, or when ctx ends with ctx's error. Spans and records that
// the backend refuses count as gone; Close's Stats know them.
func (e *Exporter) Flush(ctx context.Context) error {
	var failed, unlogged error
	var all sync.WaitGroup
	if e.records != nil {
		all.Go(func() { unlogged = e.records.ForceFlush(ctx) })
	}
	if e.meters != nil {
		all.Go(func() {
			if failed = e.meters.ForceFlush(ctx); failed == nil {
				failed = e.meter.err()
			}
		})
	}
	var err error
	if e.queue != nil {
		err = e.queue.ForceFlush(ctx)
	}
	all.Wait()
	return cmp.Or(err, unlogged, failed)
}

// Close exports what is queued and the metrics once more, until all has left or ctx ends, and stops everything. It
// returns as soon as ctx ends; spans of windows that are still open are lost, so end those before. Later calls give
// the same Stats.
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
		all.Go(func() { _ = e.records.Shutdown(ctx) }) // the same in Stats
	}
	if e.meters != nil {
		all.Go(func() {
			if err := e.meters.Shutdown(ctx); err != nil && e.meter.err() == nil {
				e.meter.note(err) // the reader gave up before it came to export
			}
		})
	}
	if e.queue != nil {
		_ = e.queue.Shutdown(ctx) // the same in Stats
	}
	all.Wait()
	if e.provider != nil {
		_ = e.provider.Shutdown(context.WithoutCancel(ctx)) // the queue has stopped: nothing is left that could fail
	}
	if e.loggers != nil {
		_ = e.loggers.Shutdown(context.WithoutCancel(ctx))
	}
	for _, hangUp := range e.hangUps {
		hangUp()
	}
}
