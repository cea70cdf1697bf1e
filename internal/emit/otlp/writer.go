package otlp

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// Writer writes metrics repeatedly. It caches attribute sets as pdata, which saves about a third of the time. The zero
// value is ready. It is not safe for concurrent use.
type Writer struct {
	known map[attribute.Distinct]pcommon.Map
}

// maxKnown bounds the cache, to about 3 MiB. A full cache is emptied.
const maxKnown = 8192

// Metrics does the same as the function Metrics.
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
	list.RemoveIf(func(m pmetric.Metric) bool { return m.Type() == pmetric.MetricTypeEmpty })
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
