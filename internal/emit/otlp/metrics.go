package otlp

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

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
		sum(w, data, to.SetEmptySum())
	case metricdata.Sum[float64]:
		sum(w, data, to.SetEmptySum())
	case metricdata.Histogram[float64]:
		w.histogram(data, to.SetEmptyHistogram())
	case metricdata.ExponentialHistogram[float64]:
		w.exponential(data, to.SetEmptyExponentialHistogram())
	}
}

func sum[N int64 | float64](w *Writer, s metricdata.Sum[N], to pmetric.Sum) {
	to.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	to.SetIsMonotonic(s.IsMonotonic)
	numbers(w, s.DataPoints, to.DataPoints())
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

func (w *Writer) histogram(h metricdata.Histogram[float64], to pmetric.Histogram) {
	to.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	points := to.DataPoints()
	points.EnsureCapacity(len(h.DataPoints))
	for i := range h.DataPoints {
		from, point := &h.DataPoints[i], points.AppendEmpty()
		w.attributes(from.Attributes, point.Attributes())
		point.SetStartTimestamp(moment(from.StartTime))
		point.SetTimestamp(moment(from.Time))
		point.SetCount(from.Count)
		point.SetSum(from.Sum)
		point.ExplicitBounds().FromRaw(from.Bounds)
		point.BucketCounts().FromRaw(from.BucketCounts)
		if v, ok := from.Min.Value(); ok {
			point.SetMin(v)
		}
		if v, ok := from.Max.Value(); ok {
			point.SetMax(v)
		}
		exemplars(from.Exemplars, point.Exemplars())
	}
}

func (w *Writer) exponential(h metricdata.ExponentialHistogram[float64], to pmetric.ExponentialHistogram) {
	to.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	points := to.DataPoints()
	points.EnsureCapacity(len(h.DataPoints))
	for i := range h.DataPoints {
		from, point := &h.DataPoints[i], points.AppendEmpty()
		w.attributes(from.Attributes, point.Attributes())
		point.SetStartTimestamp(moment(from.StartTime))
		point.SetTimestamp(moment(from.Time))
		point.SetCount(from.Count)
		point.SetSum(from.Sum)
		point.SetScale(from.Scale)
		point.SetZeroCount(from.ZeroCount)
		point.SetZeroThreshold(from.ZeroThreshold)
		point.Positive().SetOffset(from.PositiveBucket.Offset)
		point.Positive().BucketCounts().FromRaw(from.PositiveBucket.Counts)
	}
}

// Writer writes metrics repeatedly. It caches attribute sets as pdata, which saves about a third of the time. The zero
// value is ready. It is not safe for concurrent use.
type Writer struct {
	known map[attribute.Distinct]pcommon.Map
}

// maxKnown bounds the cache, to about 3 MiB. A full cache is emptied.
const maxKnown = 8192

// Metrics appends the metrics of a scope, with the scope and its schema URL; nothing for a scope without metrics.
func (w *Writer) Metrics(m metricdata.ScopeMetrics, to pmetric.ResourceMetrics) {
	if len(m.Metrics) == 0 {
		return
	}
	scope := to.ScopeMetrics().AppendEmpty()
	scope.SetSchemaUrl(m.Scope.SchemaURL)
	Scope(m.Scope, scope.Scope())
	list := scope.Metrics()
	list.EnsureCapacity(len(m.Metrics))
	for i := range m.Metrics {
		w.metric(&m.Metrics[i], list.AppendEmpty())
	}
}

// attributes writes the set of a point. The key is a hash of 64 bits, by which the SDK distinguishes sets, too.
func (w *Writer) attributes(s attribute.Set, to pcommon.Map) {
	key := s.Equivalent()
	if known, ok := w.known[key]; ok {
		known.CopyTo(to)
		return
	}
	set(s, to)
	if w.known == nil || len(w.known) >= maxKnown {
		w.known = map[attribute.Distinct]pcommon.Map{}
	}
	kept := pcommon.NewMap() // a copy, because consumers may change to
	to.CopyTo(kept)
	w.known[key] = kept
}
