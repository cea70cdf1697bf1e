package emit_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/test/golden"
)

// checkText compares text with testdata/<name>.txt.
func checkText(t *testing.T, name, got string) {
	t.Helper()
	golden.Check(t, filepath.Join("testdata", name+".txt"), []byte(got))
}

// metricsText writes metrics for people: a line a metric, and under it a line a point.
func metricsText(scope metricdata.ScopeMetrics) string {
	var b strings.Builder
	fmt.Fprintf(&b, "scope %s %s %s\n", scope.Scope.Name, scope.Scope.Version, scope.Scope.SchemaURL)
	for _, m := range scope.Metrics {
		fmt.Fprintf(&b, "\n%s [%s]", m.Name, m.Unit)
		switch data := m.Data.(type) {
		case metricdata.Sum[int64]:
			fmt.Fprintf(&b, " sum, monotonic %v\n", data.IsMonotonic)
			pointsText(&b, data.DataPoints)
		case metricdata.Sum[float64]:
			fmt.Fprintf(&b, " sum, monotonic %v\n", data.IsMonotonic)
			pointsText(&b, data.DataPoints)
		case metricdata.Gauge[int64]:
			b.WriteString(" gauge\n")
			pointsText(&b, data.DataPoints)
		case metricdata.Gauge[float64]:
			b.WriteString(" gauge\n")
			pointsText(&b, data.DataPoints)
		case metricdata.Histogram[float64]:
			b.WriteString(" histogram\n")
			histogramText(&b, data.DataPoints)
		}
	}
	return b.String()
}

func pointsText[N int64 | float64](b *strings.Builder, points []metricdata.DataPoint[N]) {
	for _, p := range points {
		fmt.Fprintf(b, "  %v {%s} %s\n", p.Value, attributesText(p.Attributes.ToSlice()), timesText(p.StartTime, p.Time))
	}
}

func histogramText(b *strings.Builder, points []metricdata.HistogramDataPoint[float64]) {
	for _, p := range points {
		least, _ := p.Min.Value()
		most, _ := p.Max.Value()
		fmt.Fprintf(b, "  count %d sum %v min %v max %v {%s} %s\n    buckets", p.Count, p.Sum, least, most,
			attributesText(p.Attributes.ToSlice()), timesText(p.StartTime, p.Time))
		for i, n := range p.BucketCounts {
			if n > 0 && i < len(p.Bounds) {
				fmt.Fprintf(b, " up to %v: %d", p.Bounds[i], n)
			} else if n > 0 {
				fmt.Fprintf(b, " above: %d", n)
			}
		}
		b.WriteString("\n")
		for _, e := range p.Exemplars {
			fmt.Fprintf(b, "    exemplar %v trace %x span %x at %s\n", e.Value, e.TraceID, e.SpanID, clock(e.Time))
		}
	}
}

// spanText writes a span with its events and children, further in by indent.
func spanText(b *strings.Builder, s emit.Span, indent string) {
	fmt.Fprintf(b, "%s%q %s, %s\n", indent, s.Name, timesText(s.Start, s.End), trace.ValidateSpanKind(s.Kind))
	for _, kv := range s.Attributes {
		fmt.Fprintf(b, "%s  %s\n", indent, attributesText([]attribute.KeyValue{kv}))
	}
	for _, e := range s.Events {
		fmt.Fprintf(b, "%s  event %s at %s {%s}\n", indent, e.Name, clock(e.Time), attributesText(e.Attributes))
	}
	for _, child := range s.Children {
		spanText(b, child, indent+"  ")
	}
}

func attributesText(list []attribute.KeyValue) string {
	var words []string
	for _, kv := range list {
		words = append(words, fmt.Sprintf("%s=%#v", kv.Key, kv.Value.AsInterface()))
	}
	return strings.Join(words, ", ")
}

func timesText(start, at time.Time) string {
	if start.IsZero() {
		return "at " + clock(at)
	}
	return "from " + clock(start) + " to " + clock(at)
}

// clock writes a moment of the made-up machine's day.
func clock(at time.Time) string { return at.UTC().Format("15:04:05.999999") }
