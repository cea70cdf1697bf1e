// Package telemetry exports a command's metrics, spans and events, and keeps the reports of its windows.
package telemetry

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/agent/internal/cli"
	"github.com/stallspan/stallspan/agent/internal/export"
	"github.com/stallspan/stallspan/agent/internal/version"
	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/internal/config"
	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/internal/windows"
)

// Telemetry exports a command's metrics and spans over OTLP, if the environment sets a backend.
type Telemetry struct {
	Metrics  *emit.Metrics
	Exporter *export.Exporter
	Handover *Handover // of the events of windows; nil for none
	show     config.Spans

	first     sync.WaitGroup // the first collection of metrics
	stopFirst context.CancelFunc
}

const (
	flushTime = 10 * time.Second // how long a command waits for the backend at its end
	sayAfter  = time.Second      // after this part of the wait, the command prints what it waits for
)

// Open begins to export the readings of m, except the disabled metrics. The first metrics are sent at
// once: a run shorter than an interval would otherwise send one point of each series, which gives no rate.
func Open(ctx context.Context, m *monitor.Monitor, show config.Spans) (*Telemetry, error) {
	t, err := OpenWith(ctx, m, export.Options{}, config.Metrics(nil).Disabled()...)
	if err == nil {
		t.show = show
	}
	return t, err
}

// OpenWith is openTelemetry with options. It sets Version, Root, Collect and Report itself.
func OpenWith(ctx context.Context, m *monitor.Monitor, o export.Options, disabled ...string) (*Telemetry,
	error) {
	t := &Telemetry{Metrics: emit.NewMetrics(version.Number(), disabled...)}
	var running atomic.Pointer[export.Exporter] // which may ask for metrics before New returns
	t.Metrics.Own = func() emit.Own {
		return emit.Own{Since: sample.Began(), Panics: sample.Panics(), Late: m.Late(), Lost: running.Load().Lost(),
			Refused: len(m.Refusals())}
	}
	var err error
	o.Version, o.Root = version.Number(), m.Root()
	o.Report = func(line string) { cli.Say("warning: %s", line) }
	o.Collect = func() metricdata.ScopeMetrics { return t.Metrics.Collect(m.Collect()) }
	o.Jobs = t.Metrics.Jobs
	t.Exporter, err = export.New(ctx, o)
	if err != nil {
		return nil, err
	}
	running.Store(t.Exporter)
	ctx, t.stopFirst = context.WithTimeout(ctx, flushTime)
	t.first.Go(func() { _ = t.Exporter.Flush(ctx) }) // a lasting failure shows again at the end
	return t, nil
}

// Status returns what became of the exported signals.
func (t *Telemetry) Status() api.ExportStatus {
	s := api.ExportStatus{Enabled: t.Exporter.Exports(), Lost: t.Exporter.Lost()}
	if err := t.Exporter.Failing(); err != nil {
		s.Failing = err.Error()
	}
	return s
}

// Begin starts the span of a window.
func (t *Telemetry) Begin(name string, start time.Time, parent trace.SpanContext) windows.Span {
	span := t.Exporter.Begin(name, start, parent)
	if t.Handover == nil {
		return span
	}
	return &EventSpan{span, t.Handover.post}
}

// Close flushes the queue and prints what was lost. A signal ends only the wait: the losses are still printed.
func (t *Telemetry) Close(ctx context.Context) {
	ctx, stop := signal.NotifyContext(ctx, append(cli.NotIgnored(os.Interrupt), syscall.SIGTERM)...)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, flushTime)
	defer cancel()
	t.Handover.close(ctx)
	t.stopFirst()
	t.first.Wait()
	waiting := time.AfterFunc(sayAfter, func() {
		cli.Say("flushing to the OTLP backend, for at most %v (^C to stop)", flushTime)
	})
	defer waiting.Stop()
	if lost := t.Exporter.Close(ctx).Lost(); lost != "" {
		cli.Say("%s", lost)
	}
}

// RootSpan is the parent of a run's windows, with the ledger and the verdict of the whole run. whole is nil if the
// run's own window could not begin.
func (t *Telemetry) RootSpan(name string, began time.Time, whole *window.Report) emit.Span {
	s := emit.Span{Start: began, End: time.Now()}
	if whole != nil {
		s = emit.WindowSpan(whole, t.show)
		s.Children = nil // the windows within the run have their own
	}
	s.Name = RootName(name)
	return s
}

// RootName is the name of the span of a run.
func RootName(run string) string { return emit.UTF8("run " + run) }

// ParentFromEnvironment is the parent of the run's span, if the caller set one.
func ParentFromEnvironment() trace.SpanContext {
	parent, err := emit.ParseTraceparent(os.Getenv("TRACEPARENT"))
	if err != nil {
		return trace.SpanContext{}
	}
	return parent
}
