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

// TestParityOfEverything sends what no recording holds: every type of attribute, every aggregation, times and values at
// the ends of their ranges.
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
		attribute.BoolSlice("b bools", []bool{true, false}),
		attribute.ByteSlice("c bytes", []byte{0, 0xff}),
		{Key: "d empty"},
		attribute.Float64("e float", math.MaxFloat64),
		attribute.Float64Slice("f floats", []float64{0, math.Inf(-1), -0.5, 1e-300}),
		attribute.Int64("g int", math.MinInt64),
		attribute.Int64Slice("h ints", []int64{math.MaxInt64, 0, -1, 1, 2}),
		attribute.Map("i map", attribute.String("k", "v"), attribute.Map("nested", attribute.Int("n", 1))),
		attribute.Slice("j slice", attribute.StringValue("text"), attribute.BoolValue(false), attribute.SliceValue()),
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
	scope := emit.Scope(version)
	scope.Attributes = attribute.NewSet(everyAttribute()...)
	all := metricdata.ScopeMetrics{Scope: scope, Metrics: []metricdata.Metrics{
		{Name: "summary", Data: metricdata.Summary{DataPoints: []metricdata.SummaryDataPoint{{
			Attributes: attribute.NewSet(everyAttribute()...), StartTime: booted, Time: booted.Add(time.Hour), Count: 3,
			Sum:            4.5,
			QuantileValues: []metricdata.QuantileValue{{Quantile: 0.5, Value: 1}, {Quantile: 1, Value: 2}},
		}}}},
	}}
	all.Metrics = append(all.Metrics, everyAggregation[int64]("int ", math.MinInt64, 0, math.MaxInt64)...)
	all.Metrics = append(all.Metrics, everyAggregation("float ", -math.MaxFloat64, math.SmallestNonzeroFloat64,
		math.Inf(1))...)
	return all
}

func everyAggregation[N int64 | float64](prefix string, values ...N) []metricdata.Metrics {
	var points []metricdata.DataPoint[N]
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
	cumulative, delta := metricdata.CumulativeTemporality, metricdata.DeltaTemporality
	return []metricdata.Metrics{
		{Name: prefix + "gauge", Description: "a gauge", Unit: "By", Data: metricdata.Gauge[N]{DataPoints: points}},
		{Name: prefix + "counter", Data: metricdata.Sum[N]{DataPoints: points, Temporality: cumulative, IsMonotonic: true}},
		{Name: prefix + "updown", Data: metricdata.Sum[N]{DataPoints: points, Temporality: delta}},
		{Name: prefix + "histogram", Data: metricdata.Histogram[N]{Temporality: delta,
			DataPoints: []metricdata.HistogramDataPoint[N]{
				{Attributes: attribute.NewSet(everyAttribute()...), StartTime: booted, Time: booted.Add(time.Hour), Count: 3,
					Sum:    values[0],
					Bounds: []float64{1, 2}, BucketCounts: []uint64{1, 0, 2}, Exemplars: points[0].Exemplars,
					Min: metricdata.NewExtrema(values[0]), Max: metricdata.NewExtrema(values[2])},
				{Time: booted},
			}}},
		{Name: prefix + "exponential", Data: metricdata.ExponentialHistogram[N]{Temporality: cumulative,
			DataPoints: []metricdata.ExponentialHistogramDataPoint[N]{
				{StartTime: booted, Time: booted.Add(time.Hour), Count: 9, Sum: values[1], Scale: -3, ZeroCount: 2,
					ZeroThreshold:  0.25,
					PositiveBucket: metricdata.ExponentialBucket{Offset: 4, Counts: []uint64{1, 2}},
					NegativeBucket: metricdata.ExponentialBucket{Offset: -4, Counts: []uint64{4}},
					Min:            metricdata.NewExtrema(values[1]), Max: metricdata.NewExtrema(values[2]),
					Exemplars: points[1].Exemplars},
				{Time: booted},
			}}},
	}
}
