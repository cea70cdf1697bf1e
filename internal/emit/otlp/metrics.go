package otlp

import (
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// Metrics appends the metrics of a scope, with the scope and its schema URL; nothing for a scope without metrics. It
// leaves out metrics of a temporality or an aggregation that OTLP lacks. A Writer is faster for repeated calls.
func Metrics(m metricdata.ScopeMetrics, to pmetric.ResourceMetrics) { new(Writer).Metrics(m, to) }

func (w *Writer) metric(m *metricdata.Metrics, to pmetric.Metric) {
	to.SetName(m.Name)
	to.SetDescription(m.Description)
	to.SetUnit(m.Unit)
	switch data := m.Data.(type) {
	case metricdata.Gauge[int64]:
		numbers(w, data.DataPoints, to.SetEmptyGauge().DataPoints())
	case metricdata.Gauge[float64]:
		numbers(w, data.DataPoints, to.SetEmptyGauge().DataPoints())
	case metricdata.Sum[int64]:
		sum(w, data, to)
	case metricdata.Sum[float64]:
		sum(w, data, to)
	case metricdata.Histogram[int64]:
		histogram(w, data, to)
	case metricdata.Histogram[float64]:
		histogram(w, data, to)
	case metricdata.ExponentialHistogram[int64]:
		exponential(w, data, to)
	case metricdata.ExponentialHistogram[float64]:
		exponential(w, data, to)
	case metricdata.Summary:
		summary(w, data, to.SetEmptySummary().DataPoints())
	}
}

func sum[N int64 | float64](w *Writer, s metricdata.Sum[N], to pmetric.Metric) {
	t, known := temporality(s.Temporality)
	if !known {
		return
	}
	data := to.SetEmptySum()
	data.SetAggregationTemporality(t)
	data.SetIsMonotonic(s.IsMonotonic)
	numbers(w, s.DataPoints, data.DataPoints())
}

func temporality(t metricdata.Temporality) (_ pmetric.AggregationTemporality, known bool) {
	switch t {
	case metricdata.CumulativeTemporality:
		return pmetric.AggregationTemporalityCumulative, true
	case metricdata.DeltaTemporality:
		return pmetric.AggregationTemporalityDelta, true
	default:
		return pmetric.AggregationTemporalityUnspecified, false
	}
}

func numbers[N int64 | float64](w *Writer, points []metricdata.DataPoint[N], to pmetric.NumberDataPointSlice) {
	to.EnsureCapacity(len(points))
	for i := range points {
		from, point := &points[i], to.AppendEmpty()
		w.attributes(from.Attributes, point.Attributes())
		point.SetStartTimestamp(moment(from.StartTime))
		point.SetTimestamp(moment(from.Time))
		exemplars(from.Exemplars, point.Exemplars())
		switch v := any(from.Value).(type) {
		case int64:
			point.SetIntValue(v)
		case float64:
			point.SetDoubleValue(v)
		}
	}
}

func exemplars[N int64 | float64](all []metricdata.Exemplar[N], to pmetric.ExemplarSlice) {
	to.EnsureCapacity(len(all))
	for i := range all {
		from, exemplar := &all[i], to.AppendEmpty()
		Attributes(from.FilteredAttributes, exemplar.FilteredAttributes())
		exemplar.SetTimestamp(moment(from.Time))
		// Ids of another length are invalid.
		if len(from.TraceID) == 16 {
			exemplar.SetTraceID([16]byte(from.TraceID))
		}
		if len(from.SpanID) == 8 {
			exemplar.SetSpanID([8]byte(from.SpanID))
		}
		switch v := any(from.Value).(type) {
		case int64:
			exemplar.SetIntValue(v)
		case float64:
			exemplar.SetDoubleValue(v)
		}
	}
}
