//go:build linux && (amd64 || arm64)

package receiver

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/otel/attribute"
	"go.uber.org/zap"

	"github.com/stallspan/stallspan/internal/alert"
	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/emit/otlp"
	_ "github.com/stallspan/stallspan/internal/helper/separate" // a Collector may be asked to give its capabilities up
	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/windows"
	"github.com/stallspan/stallspan/receiver/internal/metadata"
)

// flushBy is how long after its begin Shutdown waits for the pipelines to accept what is left. What is before that
// takes ten seconds at most, and what is after it six, whatever hangs.
const flushBy = 14 * time.Second

// stallspanReceiver is one receiver in one to three pipelines. The first Start starts it, and the first Shutdown ends
// it: the Collector shuts a receiver down before the rest of its pipeline, so the last spans must leave then.
type stallspanReceiver struct {
	config   *Config
	settings receiver.Settings
	share    *monitor.Share
	remove   func() // removes the receiver from its factory
	devices  deviceFilter
	metrics  *emit.Metrics
	resource []attribute.KeyValue

	spans   *output[endedSpan]  // nil without a traces pipeline
	records *output[emit.Event] // nil without a logs pipeline
	board   alert.Board         // recent events, for the API

	start, shutdown sync.Once
	startErr        error

	mu          sync.Mutex       // guards the fields below
	monitor     *monitor.Monitor // this and the next four are set from Start to Shutdown
	client      *windows.Client
	telemetry   *metadata.TelemetryBuilder
	server      *server // nil if windows cannot be announced
	unsubscribe func()  // from the monitor's events
	unwatch     func()  // from its hangs

	writer   otlp.Writer
	failures map[string]uint64 // by source, up to the last scrape
	reported map[string]string // the reported reason of each source that is failing
	refusals []string          // that were logged
}

func newReceiver(set receiver.Settings, c *Config) *stallspanReceiver {
	name := "receiver " + set.ID.String()
	r := &stallspanReceiver{
		config:   c,
		settings: set,
		share:    monitor.Claim(name, c.monitorConfig()),
		remove:   func() {},
		devices:  deviceFilter{c.Disks.compile(), c.GPUs.compile()},
		metrics:  emit.NewMetrics(set.BuildInfo.Version, c.Metrics.Disabled()...),
		resource: emit.Resource(c.Sampling.RootPath),
		failures: map[string]uint64{},
		reported: map[string]string{},
	}
	r.share.Limit(name, c.Slow)
	return r
}

// Start begins to sample and to serve the API. The Collector calls it once for each pipeline.
func (r *stallspanReceiver) Start(_ context.Context, host component.Host) error {
	r.start.Do(func() {
		if r.startErr = r.open(host); r.startErr != nil {
			r.close(context.Background())
		}
	})
	return r.startErr
}

// reportHang sets the status of the component, by which an extension such as healthcheckv2 judges the Collector.
func reportHang(host component.Host, hangs bool) {
	event := componentstatus.NewEvent(componentstatus.StatusOK)
	if hangs {
		event = componentstatus.NewRecoverableErrorEvent(errors.New("no reading has ended for five seconds: a source hangs"))
	}
	componentstatus.ReportStatus(host, event)
}

// Shutdown ends open windows as unfinished, delivers what is left, and stops sampling. The Collector calls it once for
// each pipeline, also without a Start.
func (r *stallspanReceiver) Shutdown(ctx context.Context) error {
	r.shutdown.Do(func() {
		r.start.Do(func() { r.startErr = errors.New("the receiver has been shut down") })
		r.close(ctx)
		r.remove()
	})
	return nil
}

func (r *stallspanReceiver) open(host component.Host) (err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.hasWindows() { // first, because it fails if another receiver serves the socket
		if r.server, err = listen(r.config); err != nil {
			return err
		}
	}
	m, err := r.share.Start()
	if err != nil {
		return err
	}
	r.monitor = m
	r.metrics.Own = func() emit.Own {
		return emit.Own{Since: sample.Began(), Panics: sample.Panics(), Late: m.Late(),
			Lost: uint64(r.spans.lost() + r.records.lost()), Refused: len(m.Refusals())}
	}
	r.client = m.Windows.NewClient(windows.Options{
		Spans: r.begin, Show: r.config.Spans, Durations: r.metrics.Durations,
	})
	if r.telemetry, err = r.observe(m, r.client); err != nil {
		return err
	}
	r.unwatch = m.OnHang(func(hangs bool) { reportHang(host, hangs) })
	r.spans.start()
	r.records.start()
	if r.hasWindows() {
		r.client.TakeDetected()
		r.unsubscribe = m.OnEvent(r.onEvent)
	}
	r.server.start(m, r.client, api.Events{Board: &r.board, Reported: r.postEvent, Export: r.exportStatus}, r.settings)
	for source, failure := range m.Failures() {
		r.reported[source] = failure.Last.Error()
	}
	r.settings.Logger.Info("watching "+m.Inventory().String(), zap.Duration("interval", m.Interval()))
	for _, problem := range m.Problems() {
		r.settings.Logger.Warn("a source cannot be read", zap.Error(problem))
	}
	r.logRefusals()
	if !r.hasWindows() && (r.config.Socket != "" || r.config.Endpoint != "") {
		r.settings.Logger.Warn("no windows can be announced: socket and endpoint need a pipeline of traces or logs, " +
			"and this receiver is in pipelines of metrics only")
	}
	return nil
}

// exportStatus returns what became of spans and log records within the Collector. What its exporters lose is theirs.
func (r *stallspanReceiver) exportStatus() api.ExportStatus {
	return api.ExportStatus{Enabled: true, Lost: uint64(r.spans.lost() + r.records.lost())}
}

// hasWindows reports whether a pipeline takes the spans or the events of windows.
func (r *stallspanReceiver) hasWindows() bool { return r.spans != nil || r.records != nil }

// close undoes open, also one that failed halfway.
func (r *stallspanReceiver) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, flushBy)
	defer cancel()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.server.stop()
	if r.client != nil {
		r.monitor.End(r.client)
	}
	if r.unsubscribe != nil {
		r.unsubscribe()
	}
	if r.unwatch != nil {
		r.unwatch()
	}
	var outputs sync.WaitGroup
	outputs.Go(func() { r.spans.close(ctx) })
	outputs.Go(func() { r.records.close(ctx) })
	outputs.Wait()
	if r.telemetry != nil {
		r.telemetry.Shutdown()
	}
	r.share.Stop()
	r.monitor, r.client, r.telemetry, r.server, r.unsubscribe, r.unwatch = nil, nil, nil, nil, nil, nil
}
