package otlp

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// Writer writes metrics of the same devices again and again. It remembers what their attribute sets look like in pdata,
// which saves about a third of the time. The zero value is ready. It is not safe for concurrent use.
type Writer struct {
	known map[attribute.Distinct]pcommon.Map
}

// mostKnown bounds Writer.known, to about 3 MiB. Past it everything is forgotten, and learned anew.
const mostKnown = 8192

// Metrics is what the function Metrics is.
func (w *Writer) Metrics(m metricdata.ScopeMetrics, to pmetric.ResourceMetrics) {
	if len(m.Metrics) == 0 {
		return
	}
	scope := to.ScopeMetrics().AppendEmpty()
	scope.SetSchemaUrl(text(m.Scope.SchemaURL))
	Scope(m.Scope, scope.Scope())
	list := scope.Metrics()
	list.EnsureCapacity(len(m.Metrics))
	for i := range m.Metrics {
		w.metric(&m.Metrics[i], list.AppendEmpty())
	}
	list.RemoveIf(func(m pmetric.Metric) bool { return m.Type() == pmetric.MetricTypeEmpty })
}

// attributes writes a point's set. Two sets of one hash would be mistaken for each other: with 64 bits they do not meet,
// and the SDK tells sets apart by nothing else.
func (w *Writer) attributes(s attribute.Set, to pcommon.Map) {
	key := s.Equivalent()
	if known, ok := w.known[key]; ok {
		known.CopyTo(to)
		return
	}
	set(s, to)
	if w.known == nil || len(w.known) >= mostKnown {
		w.known = map[attribute.Distinct]pcommon.Map{}
	}
	kept := pcommon.NewMap() // what is in to belongs to whoever comes after us, and may be changed there
	to.CopyTo(kept)
	w.known[key] = kept
}
