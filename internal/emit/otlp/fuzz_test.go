package otlp_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/emit/otlp"
)

// FuzzAttributes writes any names and values. None may panic, all text must be UTF-8, and numbers must survive.
func FuzzAttributes(f *testing.F) {
	f.Add("key", "text", int64(1), 0.5, true)
	f.Add("", "", int64(math.MinInt64), math.Inf(1), false)
	f.Add("\xe4", "a\xffb\xfe", int64(math.MaxInt64), math.NaN(), true)
	f.Fuzz(func(t *testing.T, key, text string, n int64, x float64, b bool) {
		key, text = emit.UTF8(key), emit.UTF8(text) // as all text of emit is
		name := func(s string) attribute.Key { return attribute.Key(key + s) }
		attrs := []attribute.KeyValue{
			name("").String(text), name("n").Int64(n), name("x").Float64(x), name("b").Bool(b),
			name("texts").StringSlice([]string{text, key}),
		}
		to := pcommon.NewMap()
		otlp.Attributes(attrs, to)
		if want := len(attrs); to.Len() != want && key != "" {
			t.Errorf("%d attributes became %d", want, to.Len())
		}
		checkText(t, to)
		valid := pcommon.NewMap()
		otlp.Attributes([]attribute.KeyValue{name("n").Bool(true)}, valid)
		for k := range valid.All() {
			v, _ := to.Get(k)
			if v.Int() != n {
				t.Errorf("%d became %d", n, v.Int())
			}
			v, _ = to.Get(k[:len(k)-1] + "x")
			if math.Float64bits(v.Double()) != math.Float64bits(x) {
				t.Errorf("%v became %v", x, v.Double())
			}
		}
		checkEverything(t, key, text, attrs)
	})
}

// checkEverything writes the same names and values wherever one may stand, to the wire.
func checkEverything(t *testing.T, key, text string, attrs []attribute.KeyValue) {
	t.Helper()
	metrics := pmetric.NewMetrics()
	new(otlp.Writer).Metrics(metricdata.ScopeMetrics{Metrics: []metricdata.Metrics{{
		Name: key, Description: text, Unit: text,
		Data: metricdata.Gauge[int64]{DataPoints: []metricdata.DataPoint[int64]{
			{Attributes: attribute.NewSet(slices.Clone(attrs)...)},
		}},
	}}}, metrics.ResourceMetrics().AppendEmpty())
	m := metrics.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0)
	checkText(t, m.Gauge().DataPoints().At(0).Attributes())
	event := emit.Event{Name: text, Attributes: attrs}
	traces := ptrace.NewTraces()
	spans := traces.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
	otlp.Span(emit.Span{Name: text, Attributes: attrs, Events: []emit.Event{event}}, spanContext(false),
		trace.SpanContext{}, spans)
	records := plog.NewLogRecordSlice()
	otlp.Record(event, trace.SpanContext{}, records)
	for _, s := range []string{m.Name(), m.Description(), m.Unit(), spans.At(0).Name(), spans.At(0).Events().At(0).Name(),
		records.At(0).EventName()} {
		if !utf8.ValidString(s) {
			t.Errorf("%q is no UTF-8", s)
		}
	}
	if _, err := (&pmetric.ProtoMarshaler{}).MarshalMetrics(metrics); err != nil {
		t.Error(err)
	}
	if _, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(traces); err != nil {
		t.Error(err)
	}
}

// checkText looks at all keys and values, at any depth.
func checkText(t *testing.T, m pcommon.Map) {
	t.Helper()
	for k, v := range m.All() {
		if !utf8.ValidString(k) || k == "" {
			t.Errorf("the key %q", k)
		}
		checkValue(t, v)
	}
}

func checkValue(t *testing.T, v pcommon.Value) {
	t.Helper()
	switch v.Type() {
	case pcommon.ValueTypeStr:
		if !utf8.ValidString(v.Str()) {
			t.Errorf("%q is no UTF-8", v.Str())
		}
	case pcommon.ValueTypeSlice:
		for _, x := range v.Slice().All() {
			checkValue(t, x)
		}
	case pcommon.ValueTypeMap:
		checkText(t, v.Map())
	default: // numbers and bytes
	}
}

// As many points come out as go in, and their values add up to the same.
func TestPointsSurvive(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var w otlp.Writer
	for range 200 {
		var scope metricdata.ScopeMetrics
		var points int
		var ints int64
		var floats float64
		for range random.IntN(5) {
			var i metricdata.Sum[int64]
			var f metricdata.Gauge[float64]
			i.Temporality = metricdata.CumulativeTemporality
			for k := range random.IntN(50) {
				attrs := attribute.NewSet(attribute.Int("k", k%7))
				i.DataPoints = append(i.DataPoints, metricdata.DataPoint[int64]{Attributes: attrs, Time: time.Now(),
					Value: random.Int64()})
				f.DataPoints = append(f.DataPoints, metricdata.DataPoint[float64]{Attributes: attrs, Time: time.Now(),
					Value: random.NormFloat64()})
				points, ints, floats = points+2, ints+i.DataPoints[k].Value, floats+f.DataPoints[k].Value
			}
			scope.Metrics = append(scope.Metrics, metricdata.Metrics{Data: i}, metricdata.Metrics{Data: f})
		}
		out := pmetric.NewMetrics()
		w.Metrics(scope, out.ResourceMetrics().AppendEmpty())
		if got := out.DataPointCount(); got != points {
			t.Errorf("%d points became %d", points, got)
		}
		for _, s := range out.ResourceMetrics().At(0).ScopeMetrics().All() {
			for _, m := range s.Metrics().All() {
				if m.Type() == pmetric.MetricTypeSum {
					for _, p := range m.Sum().DataPoints().All() {
						ints -= p.IntValue()
					}
					continue
				}
				for _, p := range m.Gauge().DataPoints().All() {
					floats -= p.DoubleValue()
				}
			}
		}
		if ints != 0 || math.Abs(floats) > 1e-9 {
			t.Errorf("%d and %v were lost", ints, floats)
		}
	}
}
