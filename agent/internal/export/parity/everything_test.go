package parity_test

import (
	"math"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/internal/emit"
)

// TestParityOfEverything sends what no recording holds: every type of attribute and every aggregation that emit makes,
// times and values at the ends of their ranges.
func TestParityOfEverything(t *testing.T) {
	p := newParity(t)
	p.metrics(t, everyMetric(), everyMetric())
	p.metrics(t, everyMetric(), everyMetric()) // from memory
	for _, parent := range []trace.SpanContext{{}, p.parent} {
		s := everySpan()
		open := p.exporter.Begin(s.Name, s.Start, parent)
		open.End(s)
		p.span(t, open, parent, s)
	}
}

// everyAttribute has an attribute of each type, by increasing key.
func everyAttribute() []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.Bool("a bool", true),
		attribute.Float64("e float", math.MaxFloat64),
		attribute.Int64("g int", math.MinInt64),
		attribute.String("k string", "zwölf"),
		attribute.StringSlice("l strings", []string{"", "x"}),
		attribute.StringSlice("m none", nil),
	}
}

func everySpan() emit.Span {
	start := time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC)
	return emit.Span{
		Name: "every", Start: start, End: start.Add(time.Minute), Attributes: everyAttribute(),
		Events: []emit.Event{{Name: "one", Time: start, Attributes: everyAttribute()},
			{Name: "two", Time: start.Add(time.Hour)}},
		Children: []emit.Span{
			{Name: "first", Start: start, End: start}, // of no length, and with a child of its own
			{Name: "second", Start: start.Add(time.Second), End: start.Add(2 * time.Second), Attributes: everyAttribute(),
				Children: []emit.Span{{Name: "third", Start: start.Add(3 * time.Second), End: start.Add(4 * time.Second)}}},
		},
	}
}

func everyMetric() metricdata.ScopeMetrics {
	const cumulative = metricdata.CumulativeTemporality
	infinite := math.Inf(1)
	floats := everyPoint(-math.MaxFloat64, math.SmallestNonzeroFloat64, infinite)
	all := metricdata.ScopeMetrics{Scope: emit.Scope(version), Metrics: []metricdata.Metrics{
		{Name: "histogram", Data: metricdata.Histogram[float64]{Temporality: cumulative,
			DataPoints: []metricdata.HistogramDataPoint[float64]{
				{Attributes: attribute.NewSet(everyAttribute()...), StartTime: booted, Time: booted.Add(time.Hour), Count: 3,
					Sum:    -math.MaxFloat64,
					Bounds: []float64{1, 2}, BucketCounts: []uint64{1, 0, 2}, Exemplars: floats[0].Exemplars,
					Min: metricdata.NewExtrema(-math.MaxFloat64), Max: metricdata.NewExtrema(infinite)},
				{Time: booted},
			}}},
		{Name: "exponential", Data: metricdata.ExponentialHistogram[float64]{Temporality: cumulative,
			DataPoints: []metricdata.ExponentialHistogramDataPoint[float64]{
				{StartTime: booted, Time: booted.Add(time.Hour), Count: 9, Sum: infinite, Scale: -3, ZeroCount: 2,
					ZeroThreshold:  0.25,
					PositiveBucket: metricdata.ExponentialBucket{Offset: 4, Counts: []uint64{1, 2}}},
				{Time: booted},
			}}},
	}}
	all.Metrics = append(all.Metrics, everyNumber("int ", everyPoint[int64](math.MinInt64, 0, math.MaxInt64))...)
	all.Metrics = append(all.Metrics, everyNumber("float ", floats)...)
	return all
}

func everyPoint[N int64 | float64](values ...N) (points []metricdata.DataPoint[N]) {
	for i, v := range values {
		point := metricdata.DataPoint[N]{Attributes: attribute.NewSet(attribute.Int("i", i)), Time: booted, Value: v}
		point.Exemplars = []metricdata.Exemplar[N]{
			{FilteredAttributes: everyAttribute(), Time: booted, Value: v, TraceID: make([]byte, 16),
				SpanID: []byte{1, 2, 3, 4, 5, 6, 7, 8}},
			{Value: v},
		}
		points = append(points, point)
	}
	points[0].StartTime, points[0].Attributes = booted.Add(-time.Hour), attribute.NewSet(everyAttribute()...)
	points[1].Time = time.Time{}
	return points
}

func everyNumber[N int64 | float64](prefix string, points []metricdata.DataPoint[N]) []metricdata.Metrics {
	const cumulative = metricdata.CumulativeTemporality
	return []metricdata.Metrics{
		{Name: prefix + "gauge", Description: "a gauge", Unit: "By", Data: metricdata.Gauge[N]{DataPoints: points}},
		{Name: prefix + "counter", Data: metricdata.Sum[N]{DataPoints: points, Temporality: cumulative, IsMonotonic: true}},
		{Name: prefix + "updown", Data: metricdata.Sum[N]{DataPoints: points, Temporality: cumulative}},
	}
}
