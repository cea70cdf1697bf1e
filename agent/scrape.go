package agent

import (
	"context"
	"errors"

	"github.com/stallspan/stallspan/agent/internal/export"
	"github.com/stallspan/stallspan/agent/internal/scrape"
	"github.com/stallspan/stallspan/internal/api"
)

// scraped makes what Prometheus can get: nothing from record, which has no config.
func (d *daemon) scraped(ctx context.Context) (api.Scraped, error) {
	if d.config == nil {
		return api.Scraped{}, nil
	}
	of, err := export.Resource(ctx, d.monitor.Root())
	if err != nil {
		return api.Scraped{}, err
	}
	o := scrape.Options{Version: version(), Disabled: d.config.Metrics.Disabled(), Resource: of,
		Collect: d.monitor.Collect, Own: d.telemetry.metrics.Own}
	machine, err := scrape.New(o)
	o.Jobs = true
	o.Durations = d.telemetry.metrics.Durations
	all, failed := scrape.New(o)
	return api.Scraped{All: all, Machine: machine}, errors.Join(err, failed)
}
