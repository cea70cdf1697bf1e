//go:build linux && (amd64 || arm64)

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

// NewFactory returns the factory of the receiver "stallspan".
func NewFactory() receiver.Factory {
	f := &factory{receivers: map[*Config]*stallspanReceiver{}}
	return receiver.NewFactory(metadata.Type, createDefaultConfig,
		receiver.WithMetrics(f.createMetrics, metadata.MetricsStability),
		receiver.WithTraces(f.createTraces, metadata.TracesStability),
		receiver.WithLogs(f.createLogs, metadata.LogsStability))
}

// factory holds the receivers that are not shut down. The Collector creates one for each signal, with the same config:
// they are one receiver.
type factory struct {
	mu        sync.Mutex
	receivers map[*Config]*stallspanReceiver
}

// get returns the receiver of a config. It makes one if needed.
func (f *factory) get(set receiver.Settings, config component.Config) (*stallspanReceiver, error) {
	c, ok := config.(*Config)
	if !ok {
		return nil, fmt.Errorf("the config is a %T, want a %T", config, c)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if r := f.receivers[c]; r != nil {
		return r, nil
	}
	r := newReceiver(set, c)
	r.remove = func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.receivers, c)
	}
	f.receivers[c] = r
	return r, nil
}

func (f *factory) createMetrics(
	_ context.Context, set receiver.Settings, config component.Config, next consumer.Metrics,
) (receiver.Metrics, error) {
	r, err := f.get(set, config)
	if err != nil {
		return nil, err
	}
	s, err := scraper.NewMetrics(r.scrape, scraper.WithStart(r.Start), scraper.WithShutdown(r.Shutdown))
	if err != nil {
		return nil, err
	}
	return scraperhelper.NewMetricsController(&r.config.ControllerConfig, set, next,
		scraperhelper.AddMetricsScraper(metadata.Type, s))
}

func (f *factory) createTraces(
	_ context.Context, set receiver.Settings, config component.Config, next consumer.Traces,
) (receiver.Traces, error) {
	r, err := f.get(set, config)
	if err != nil {
		return nil, err
	}
	return r, r.addTraces(set, next)
}

func (f *factory) createLogs(
	_ context.Context, set receiver.Settings, config component.Config, next consumer.Logs,
) (receiver.Logs, error) {
	r, err := f.get(set, config)
	if err != nil {
		return nil, err
	}
	return r, r.addLogs(set, next)
}
