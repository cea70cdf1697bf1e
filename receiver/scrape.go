package receiver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/scraper/scrapererror"

	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/otlp"
)

// scrape gives the metrics of the newest readings; it takes none itself. The error is a PartialScrapeError when a
// source has begun to fail since the last scrape: what the others told, and what this one told last, is there all the same.
// Another pipeline's shutdown may have ended the watching already: there is nothing then.
func (w *watcher) scrape(context.Context) (pmetric.Metrics, error) {
	out := pmetric.NewMetrics()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.monitor == nil {
		return out, nil
	}
	now := w.monitor.Collect()
	w.devices.keep(&now)
	resource := out.ResourceMetrics().AppendEmpty()
	otlp.Attributes(w.resource, resource.Resource().Attributes())
	w.writer.Metrics(w.metrics.Collect(now), resource)
	return out, w.failed(w.monitor.Failures())
}

// failed says which sources failed since it was asked last, for another reason than they did before: one line says it all
// of a machine that does not offer something. What failed at the start was told then. The history is none: it only
// remembers.
func (w *watcher) failed(now map[string]monitor.Failure) error {
	var all []error
	for _, source := range slices.Sorted(maps.Keys(now)) {
		failure := now[source]
		n := failure.Count - w.failures[source]
		w.failures[source] = failure.Count
		switch {
		case source == "history":
		case n == 0:
			delete(w.told, source)
		case failure.Last.Error() != w.told[source]:
			w.told[source] = failure.Last.Error()
			all = append(all, fmt.Errorf("%s, %d readings: %w", source, n, failure.Last))
		}
	}
	if len(all) == 0 {
		return nil
	}
	return scrapererror.NewPartialScrapeError(errors.Join(all...), len(all))
}
