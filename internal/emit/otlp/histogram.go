package otlp

import (
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

func histogram[N int64 | float64](w *Writer, h metricdata.Histogram[N], to pmetric.Metric) {
	t, known := temporality(h.Temporality)
	if !known {
		return
	}
	data := to.SetEmptyHistogram()
	data.SetAggregationTemporality(t)
	points := data.DataPoints()
	points.EnsureCapacity(len(h.DataPoints))
	for i := range h.DataPoints {
		from, point := &h.DataPoints[i], points.AppendEmpty()
		w.attributes(from.Attributes, point.Attributes())
		point.SetStartTimestamp(moment(from.StartTime))
		point.SetTimestamp(moment(from.Time))
		point.SetCount(from.Count)
		point.SetSum(float64(from.Sum))
		point.ExplicitBounds().FromRaw(from.Bounds)
		point.BucketCounts().FromRaw(from.BucketCounts)
		if v, ok := from.Min.Value(); ok {
			point.SetMin(float64(v))
		}
		if v, ok := from.Max.Value(); ok {
			point.SetMax(float64(v))
		}
		exemplars(from.Exemplars, point.Exemplars())
	}
}

func exponential[N int64 | float64](w *Writer, h metricdata.ExponentialHistogram[N], to pmetric.Metric) {
	t, known := temporality(h.Temporality)
	if !known {
		return
	}
	data := to.SetEmptyExponentialHistogram()
	data.SetAggregationTemporality(t)
	points := data.DataPoints()
	points.EnsureCapacity(len(h.DataPoints))
	for i := range h.DataPoints {
		from, point := &h.DataPoints[i], points.AppendEmpty()
		w.attributes(from.Attributes, point.Attributes())
		point.SetStartTimestamp(moment(from.StartTime))
		point.SetTimestamp(moment(from.Time))
		point.SetCount(from.Count)
		point.SetSum(float64(from.Sum))
		point.SetScale(from.Scale)
		point.SetZeroCount(from.ZeroCount)
		point.SetZeroThreshold(from.ZeroThreshold)
		buckets(from.PositiveBucket, point.Positive())
		buckets(from.NegativeBucket, point.Negative())
		if v, ok := from.Min.Value(); ok {
			point.SetMin(float64(v))
		}
		if v, ok := from.Max.Value(); ok {
			point.SetMax(float64(v))
		}
		exemplars(from.Exemplars, point.Exemplars())
	}
}

func buckets(from metricdata.ExponentialBucket, to pmetric.ExponentialHistogramDataPointBuckets) {
	to.SetOffset(from.Offset)
	to.BucketCounts().FromRaw(from.Counts)
}

func summary(w *Writer, s metricdata.Summary, to pmetric.SummaryDataPointSlice) {
	to.EnsureCapacity(len(s.DataPoints))
	for i := range s.DataPoints {
		from, point := &s.DataPoints[i], to.AppendEmpty()
		w.attributes(from.Attributes, point.Attributes())
		point.SetStartTimestamp(moment(from.StartTime))
		point.SetTimestamp(moment(from.Time))
		point.SetCount(from.Count)
		point.SetSum(from.Sum)
		for _, q := range from.QuantileValues {
			at := point.QuantileValues().AppendEmpty()
			at.SetQuantile(q.Quantile)
			at.SetValue(q.Value)
		}
	}
}
