package agent

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

	"github.com/stallspan/stallspan/agent/internal/export"
	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/internal/config"
	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/internal/windows"
)

// telemetry exports a command's metrics and spans over OTLP, if the environment sets a backend.
type telemetry struct {
	metrics  *emit.Metrics
	exporter *export.Exporter
	handover *handover // of the events of windows; nil for none
	show     config.Spans

	first     sync.WaitGroup // the first collection of metrics
	stopFirst context.CancelFunc
}

const (
	flushTime = 10 * time.Second // how long a command waits for the backend at its end
	sayAfter  = time.Second      // after this part of the wait, the command prints what it waits for
)

// openTelemetry begins to export the readings of m, except the disabled metrics. The first metrics are sent at
// once: a run shorter than an interval would otherwise send one point of each series, which gives no rate. Exporters
// other than OTLP are left to the wrapped program, which has the same environment.
func openTelemetry(ctx context.Context, m *monitor.Monitor, show config.Spans) (*telemetry, error) {
	t, err := openTelemetryWith(ctx, m, export.Options{OTLPOnly: true}, config.Metrics(nil).Disabled()...)
	if err == nil {
		t.show = show
	}
	return t, err
}

// openTelemetryWith is openTelemetry with options. It sets Version, Root, Collect and Report itself.
func openTelemetryWith(ctx context.Context, m *monitor.Monitor, o export.Options, disabled ...string) (*telemetry,
	error) {
	t := &telemetry{metrics: emit.NewMetrics(version(), disabled...)}
	var running atomic.Pointer[export.Exporter] // which may ask for metrics before New returns
	t.metrics.Own = func() emit.Own {
		return emit.Own{Since: sample.Began(), Panics: sample.Panics(), Late: m.Late(), Lost: running.Load().Lost()}
	}
	var err error
	o.Version, o.Root = version(), m.Root()
	o.Report = func(line string) { say("warning: %s", line) }
	o.Collect = func() metricdata.ScopeMetrics { return t.metrics.Collect(m.Collect()) }
	o.Jobs = t.metrics.Jobs
	t.exporter, err = export.New(ctx, o)
	if err != nil {
		return nil, err
	}
	running.Store(t.exporter)
	ctx, t.stopFirst = context.WithTimeout(ctx, flushTime)
	t.first.Go(func() { _ = t.exporter.Flush(ctx) }) // a lasting failure shows again at the end
	return t, nil
}

// status returns what became of the exported signals.
func (t *telemetry) status() api.ExportStatus {
	s := api.ExportStatus{Enabled: t.exporter.Exports(), Lost: t.exporter.Lost()}
	if err := t.exporter.Failing(); err != nil {
		s.Failing = err.Error()
	}
	return s
}

// begin starts the span of a window.
func (t *telemetry) begin(name string, start time.Time, parent trace.SpanContext) windows.Span {
	span := t.exporter.Begin(name, start, parent)
	if t.handover == nil {
		return span
	}
	return &eventSpan{span, t.handover.post}
}

// close flushes the queue and prints what was lost. A signal ends only the wait: the losses are still printed.
func (t *telemetry) close(ctx context.Context) {
	ctx, stop := signal.NotifyContext(ctx, append(notIgnored(os.Interrupt), syscall.SIGTERM)...)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, flushTime)
	defer cancel()
	t.handover.close(ctx)
	t.stopFirst()
	t.first.Wait()
	waiting := time.AfterFunc(sayAfter, func() {
		say("flushing to the OTLP backend, for at most %v (^C to stop)", flushTime)
	})
	defer waiting.Stop()
	if lost := t.exporter.Close(ctx).Lost(); lost != "" {
		say("%s", lost)
	}
}

// rootSpan is the parent of a run's windows, with the ledger and the verdict of the whole run. whole is nil if the
// run's own window could not begin.
func (t *telemetry) rootSpan(name string, began time.Time, whole *window.Report) emit.Span {
	s := emit.Span{Start: began, End: time.Now()}
	if whole != nil {
		s = emit.WindowSpan(whole, t.show)
		s.Children = nil // the windows within the run have their own
	}
	s.Name = rootName(name)
	return s
}

func rootName(run string) string { return emit.UTF8("run " + run) }
