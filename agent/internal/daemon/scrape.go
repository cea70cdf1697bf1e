package daemon

import (
	"context"
	"errors"

	"github.com/stallspan/stallspan/agent/internal/export"
	"github.com/stallspan/stallspan/agent/internal/scrape"
	"github.com/stallspan/stallspan/agent/internal/version"
	"github.com/stallspan/stallspan/internal/api"
)

// scraped makes what Prometheus can get: nothing from record, which has no config.
func (d *Daemon) scraped(ctx context.Context) (api.Scraped, error) {
	if d.config == nil {
		return api.Scraped{}, nil
	}
	of, err := export.Resource(ctx, d.Monitor.Root())
	if err != nil {
		return api.Scraped{}, err
	}
	o := scrape.Options{Version: version.Number(), Disabled: d.config.Metrics.Disabled(), Resource: of,
		Collect: d.Monitor.Collect, Own: d.Telemetry.Metrics.Own}
	machine, err := scrape.New(o)
	o.Jobs = true
	o.Durations = d.Telemetry.Metrics.Durations
	all, failed := scrape.New(o)
	return api.Scraped{All: all, Machine: machine}, errors.Join(err, failed)
}
