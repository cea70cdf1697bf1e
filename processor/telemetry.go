//go:build linux && (amd64 || arm64)

package processor

import (
	"context"
	"errors"

	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/stallspan/stallspan/internal/windows"
	"github.com/stallspan/stallspan/processor/internal/metadata"
)

// tally counts what became of the spans of a batch. The shared counters are then updated once.
type tally struct {
	annotated, foreign, conditions int64

	skipped map[string]int64        // by reason
	ignored map[attribute.Key]int64 // by the attribute's key
}

func (t *tally) skip(reason string) {
	if t.skipped == nil {
		t.skipped = map[string]int64{}
	}
	t.skipped[reason]++
}

func (t *tally) ignore(key attribute.Key) {
	if t.ignored == nil {
		t.ignored = map[attribute.Key]int64{}
	}
	t.ignored[key]++
}

// failed is the reason of a span that was skipped because of an error of ours.
const failed = "failed"

// reason returns the attribute reason for a span without a report.
func reason(err error) string {
	switch {
	case errors.Is(err, windows.ErrOld):
		return "old"
	case errors.Is(err, windows.ErrFuture):
		return "future"
	case errors.Is(err, windows.ErrBackward):
		return "backward"
	case errors.Is(err, windows.ErrEmpty):
		return "empty"
	case errors.Is(err, windows.ErrClock):
		return "clock"
	}
	return failed
}

// counters are the Collector's own metrics of a processor.
type counters struct {
	annotated, foreign, conditions, skipped, ignored metric.Int64Counter

	id attribute.KeyValue // of the processor
}

func newCounters(set processor.Settings) (counters, error) {
	meter := set.MeterProvider.Meter(metadata.ScopeName)
	var failed error
	counter := func(name, unit, what string) metric.Int64Counter {
		c, err := meter.Int64Counter("otelcol_processor_stallspan_"+name, metric.WithUnit(unit),
			metric.WithDescription(what+" [Alpha]"))
		failed = errors.Join(failed, err)
		return c
	}
	return counters{
		annotated: counter("spans_annotated", "{span}", "Spans that were annotated."),
		foreign: counter("spans_foreign", "{span}",
			"Spans of other hosts that met a condition and were not annotated."),
		conditions: counter("conditions_failed", "{condition}",
			"Conditions that returned an error on a span. They count as not met."),
		skipped: counter("spans_skipped", "{span}", "Spans of this host that met a condition and were not annotated."),
		ignored: counter("attributes_ignored", "{attribute}",
			"Attributes of spans that were ignored because of their type or value."),
		id: attribute.String("processor", set.ID.String()),
	}, failed
}

// add adds the tally of a batch.
func (c *counters) add(ctx context.Context, t *tally) {
	add := func(to metric.Int64Counter, n int64, attrs ...attribute.KeyValue) {
		if n > 0 {
			to.Add(ctx, n, metric.WithAttributes(append(attrs, c.id)...))
		}
	}
	add(c.annotated, t.annotated)
	add(c.foreign, t.foreign)
	add(c.conditions, t.conditions)
	for reason, n := range t.skipped {
		add(c.skipped, n, attribute.String("reason", reason))
	}
	for key, n := range t.ignored {
		add(c.ignored, n, attribute.String("attribute", string(key)))
	}
}
