//go:build linux && (amd64 || arm64)

package receiver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/scraper/scrapererror"
	"go.uber.org/zap"

	"github.com/stallspan/stallspan/internal/emit/otlp"
	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/sample"
)

// scrape returns the metrics of the newest readings. It takes no reading itself. The error is a PartialScrapeError if a
// source began to fail since the last scrape; the metrics of the other sources, and the last ones of this source, are
// returned all the same. After the shutdown of another pipeline there are no metrics.
func (r *stallspanReceiver) scrape(context.Context) (pmetric.Metrics, error) {
	out := pmetric.NewMetrics()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.monitor == nil {
		return out, nil
	}
	var failures error
	failed := sample.Protect(func() {
		snapshot := r.monitor.Collect()
		r.devices.apply(&snapshot)
		resource := out.ResourceMetrics().AppendEmpty()
		otlp.Attributes(r.resource, resource.Resource().Attributes())
		r.writer.Metrics(r.metrics.Collect(snapshot), resource)
		for _, job := range r.metrics.Jobs() {
			resource := out.ResourceMetrics().AppendEmpty()
			otlp.Attributes(job.Resource(r.resource), resource.Resource().Attributes())
			r.writer.Metrics(job.Metrics, resource)
		}
		failures = r.newFailures(r.monitor.Failures())
		r.logRefusals()
	})
	if failed != nil {
		return pmetric.NewMetrics(), failed
	}
	return out, failures
}

// newFailures returns an error for the sources that failed since the last call, for another reason than before. So a
// source that this machine lacks is reported once. The history is no source: it only stores readings.
func (r *stallspanReceiver) newFailures(failures map[string]monitor.Failure) error {
	var all []error
	for _, source := range slices.Sorted(maps.Keys(failures)) {
		failure := failures[source]
		n := failure.Count - r.failures[source]
		r.failures[source] = failure.Count
		switch {
		case source == "history":
		case n == 0:
			delete(r.reported, source)
		case failure.Last.Error() != r.reported[source]:
			r.reported[source] = failure.Last.Error()
			all = append(all, fmt.Errorf("%s, %d readings: %w", source, n, failure.Last))
		}
	}
	if len(all) == 0 {
		return nil
	}
	return scrapererror.NewPartialScrapeError(errors.Join(all...), len(all))
}

// logRefusals logs what the kernel refuses, if that changed.
func (r *stallspanReceiver) logRefusals() {
	now := r.monitor.Refusals().Causes()
	if slices.Equal(now, r.refusals) {
		return
	}
	if r.refusals = now; len(now) == 0 {
		r.settings.Logger.Info("the kernel refuses nothing any more")
		return
	}
	r.settings.Logger.Warn("the kernel refuses a part of the evidence", zap.Strings("not_known", now))
}
