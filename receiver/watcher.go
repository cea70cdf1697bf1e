package receiver

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/otel/attribute"
	"go.uber.org/zap"

	"github.com/stallspan/stallspan/internal/alert"
	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/otlp"
	"github.com/stallspan/stallspan/internal/session"
	"github.com/stallspan/stallspan/receiver/internal/metadata"
)

// flushTime is for how long a receiver that is shut down waits for the pipelines to take what is left.
const flushTime = 10 * time.Second

// watcher is one receiver, in however many pipelines it is. The first Start starts it and the first Shutdown ends it:
// the Collector shuts a receiver down before what stands behind it in the same pipeline, so whatever is still open can
// leave then, and no later.
type watcher struct {
	config   *Config
	settings receiver.Settings
	share    *monitor.Share
	forget   func() // has the next one with the same config be another watcher
	devices  devices
	metrics  *emit.Metrics
	resource []attribute.KeyValue

	spans   *outbox[ended]      // nil without a pipeline of traces
	records *outbox[emit.Event] // nil without a pipeline of logs
	board   alert.Board         // of the API

	start, shutdown sync.Once
	started         error

	mu          sync.Mutex // held for what follows, which is there from Start until Shutdown
	monitor     *monitor.Monitor
	session     *session.Session
	telemetry   *metadata.TelemetryBuilder
	server      *server // nil where no windows are announced
	unsubscribe func()  // from the monitor's events

	writer   otlp.Writer
	failures map[string]uint64 // by source, at the last scrape
	told     map[string]string // by source, why it fails, for as long as it does
}

func newWatcher(set receiver.Settings, c *Config) *watcher {
	w := &watcher{
		config:   c,
		settings: set,
		share:    monitor.Claim("receiver "+set.ID.String(), c.monitor()),
		devices:  devices{c.Disks.choice(), c.GPUs.choice()},
		metrics:  emit.NewMetrics(set.BuildInfo.Version, c.Metrics.Disabled()...),
		resource: emit.Resource(c.Sampling.RootPath),
		failures: map[string]uint64{},
		told:     map[string]string{},
	}
	w.share.Limit("receiver "+set.ID.String(), c.Slow)
	return w
}

// Start begins to watch. It is called once for each pipeline's kind.
func (w *watcher) Start(context.Context, component.Host) error {
	w.start.Do(func() {
		if w.started = w.open(); w.started != nil {
			w.close(context.Background())
		}
	})
	return w.started
}

// Shutdown ends the windows that are open as unfinished, hands over what is left, and stops watching. It is called once
// for each pipeline's kind, also where Start was not.
func (w *watcher) Shutdown(ctx context.Context) error {
	w.shutdown.Do(func() {
		w.start.Do(func() { w.started = errors.New("it has been shut down") })
		w.close(ctx)
		w.forget()
	})
	return nil
}

func (w *watcher) open() (err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.announced() { // first: a second one has nothing to do here
		if w.server, err = listen(w.config); err != nil {
			return err
		}
	}
	m, err := w.share.Start()
	if err != nil {
		return err
	}
	w.monitor = m
	w.session = session.New(m, session.Options{Spans: w.begin, Durations: &w.metrics.Durations})
	if w.telemetry, err = w.observe(m, w.session); err != nil {
		return err
	}
	w.spans.start()
	w.records.start()
	if w.announced() {
		w.unsubscribe = m.OnEvent(w.happened)
	}
	w.server.start(m, w.session, &w.board, w.settings)
	for source, failure := range m.Failures() {
		w.told[source] = failure.Last.Error()
	}
	w.settings.Logger.Info("watching "+m.Sight().String(), zap.Duration("interval", m.Interval()))
	for _, problem := range m.Problems() {
		w.settings.Logger.Warn("a source cannot be read", zap.Error(problem))
	}
	if !w.announced() && (w.config.Socket != "" || w.config.Endpoint != "") {
		w.settings.Logger.Warn("no windows can be announced: socket and endpoint are opened for pipelines of traces or logs, " +
			"and this receiver is in metrics alone")
	}
	return nil
}

// announced says whether windows are wanted at all: their spans, or what happens in them.
func (w *watcher) announced() bool { return w.spans != nil || w.records != nil }

// close undoes open, as far as that came.
func (w *watcher) close(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.server.stop()
	if w.session != nil {
		w.session.Close()
		w.session.EndAll(w.monitor.Now())
	}
	if w.unsubscribe != nil {
		w.unsubscribe()
	}
	ctx, cancel := context.WithTimeout(ctx, flushTime)
	defer cancel()
	w.spans.stop(ctx)
	w.records.stop(ctx)
	if w.telemetry != nil {
		w.telemetry.Shutdown()
	}
	w.share.Stop()
	w.monitor, w.session, w.telemetry, w.server, w.unsubscribe = nil, nil, nil, nil, nil
}
