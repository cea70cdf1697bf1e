package receiver

import (
	"context"
	"fmt"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/scraper"
	"go.opentelemetry.io/collector/scraper/scraperhelper"

	"github.com/stallspan/stallspan/receiver/internal/metadata"
)

// NewFactory makes the factory of the receiver "stallspan".
func NewFactory() receiver.Factory {
	all := &watchers{byConfig: map[*Config]*watcher{}}
	return receiver.NewFactory(metadata.Type, defaultConfig,
		receiver.WithMetrics(all.metrics, metadata.MetricsStability),
		receiver.WithTraces(all.traces, metadata.TracesStability),
		receiver.WithLogs(all.logs, metadata.LogsStability))
}

// watchers are the receivers that a factory has made and that have not been shut down. The Collector asks for one a
// signal, with the same config: the three are one.
type watchers struct {
	mu       sync.Mutex
	byConfig map[*Config]*watcher
}

// of is the one of a config.
func (all *watchers) of(set receiver.Settings, config component.Config) (*watcher, error) {
	c, ok := config.(*Config)
	if !ok {
		return nil, fmt.Errorf("a config of type %T is not this receiver's", config)
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	if w := all.byConfig[c]; w != nil {
		return w, nil
	}
	w := newWatcher(set, c)
	w.forget = func() {
		all.mu.Lock()
		defer all.mu.Unlock()
		delete(all.byConfig, c)
	}
	all.byConfig[c] = w
	return w, nil
}

func (all *watchers) metrics(
	_ context.Context, set receiver.Settings, config component.Config, next consumer.Metrics,
) (receiver.Metrics, error) {
	w, err := all.of(set, config)
	if err != nil {
		return nil, err
	}
	s, err := scraper.NewMetrics(w.scrape, scraper.WithStart(w.Start), scraper.WithShutdown(w.Shutdown))
	if err != nil {
		return nil, err
	}
	return scraperhelper.NewMetricsController(&w.config.ControllerConfig, set, next,
		scraperhelper.AddMetricsScraper(metadata.Type, s))
}

func (all *watchers) traces(
	_ context.Context, set receiver.Settings, config component.Config, next consumer.Traces,
) (receiver.Traces, error) {
	w, err := all.of(set, config)
	if err != nil {
		return nil, err
	}
	return w, w.giveSpans(set, next)
}

func (all *watchers) logs(
	_ context.Context, set receiver.Settings, config component.Config, next consumer.Logs,
) (receiver.Logs, error) {
	w, err := all.of(set, config)
	if err != nil {
		return nil, err
	}
	return w, w.giveRecords(set, next)
}
