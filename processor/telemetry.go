//go:build linux && (amd64 || arm64)

package processor

import (
	"context"
	"errors"

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

// reason returns the reason of metadata.yaml for a span without a report.
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

// record adds the tally to the Collector's own metrics. id is that of the processor.
func (t *tally) record(ctx context.Context, to *metadata.TelemetryBuilder, id attribute.KeyValue) {
	add := func(to metric.Int64Counter, n int64, attrs ...attribute.KeyValue) {
		if n > 0 {
			to.Add(ctx, n, metric.WithAttributes(append(attrs, id)...))
		}
	}
	add(to.ProcessorStallspanSpansAnnotated, t.annotated)
	add(to.ProcessorStallspanSpansForeign, t.foreign)
	add(to.ProcessorStallspanConditionsFailed, t.conditions)
	for reason, n := range t.skipped {
		add(to.ProcessorStallspanSpansSkipped, n, attribute.String("reason", reason))
	}
	for key, n := range t.ignored {
		add(to.ProcessorStallspanAttributesIgnored, n, attribute.String("attribute", string(key)))
	}
}
