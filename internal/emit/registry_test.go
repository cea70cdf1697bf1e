package emit_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/internal/config"
	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/semconv"
	"github.com/stallspan/stallspan/test/signals"
)

// oracle holds what is emitted against the registry, and remembers which of its names were met.
type oracle struct {
	problems map[string]bool
	met      map[string]bool // "metric system.disk.io", "metric system.disk.io disk.io.direction"
}

func newOracle() *oracle { return &oracle{problems: map[string]bool{}, met: map[string]bool{}} }

func (o *oracle) complain(format string, args ...any) {
	o.problems[fmt.Sprintf(format, args...)] = true
}

func (o *oracle) sorted() []string { return slices.Sorted(maps.Keys(o.problems)) }

// attributes checks one set in its place: every key known there and of the registered type, what is required there.
func (o *oracle) attributes(place string, refs []semconv.AttributeRef, set []attribute.KeyValue) {
	o.met[place] = true
	given := map[attribute.Key]bool{}
	for _, kv := range set {
		given[kv.Key] = true
		i := slices.IndexFunc(refs, func(r semconv.AttributeRef) bool { return r.Key == kv.Key })
		switch {
		case i < 0:
			o.complain("%s: %s is not registered there", place, kv.Key)
		case refs[i].Type != kv.Value.Type():
			o.complain("%s: %s is %v, registered as %v", place, kv.Key, kv.Value.Type(), refs[i].Type)
		default:
			o.met[place+" "+string(kv.Key)] = true
		}
	}
	if len(given) != len(set) {
		o.complain("%s: an attribute is there twice", place)
	}
	for _, r := range refs {
		if r.Required && !given[r.Key] {
			o.complain("%s: required %s is missing", place, r.Key)
		}
	}
}

// missed lists what the registry has in these places and nothing emitted.
func (o *oracle) missed() []string {
	var missed []string
	look := func(place string, refs []semconv.AttributeRef) {
		if !o.met[place] {
			missed = append(missed, place)
			return
		}
		for _, r := range refs {
			if name := place + " " + string(r.Key); !o.met[name] {
				missed = append(missed, name)
			}
		}
	}
	for _, m := range semconv.Metrics {
		look("metric "+m.Name, signals.OfMetrics[m.Name])
	}
	for _, s := range signals.Spans {
		look("span "+s.Type, s.Attributes)
	}
	for _, e := range semconv.Events {
		look("event "+e.Name, e.Attributes)
	}
	return missed
}

func (o *oracle) metrics(scope metricdata.ScopeMetrics) {
	if scope.Scope.SchemaURL != semconv.SchemaURL {
		o.complain("scope: schema URL %q", scope.Scope.SchemaURL)
	}
	names := map[string]bool{}
	for _, m := range scope.Metrics {
		if names[m.Name] {
			o.complain("metric %s: emitted in two pieces", m.Name)
		}
		names[m.Name] = true
		i := slices.IndexFunc(semconv.Metrics, func(r semconv.Metric) bool { return r.Name == m.Name })
		if i < 0 {
			o.complain("metric %s: not registered", m.Name)
			continue
		}
		o.metric(semconv.Metrics[i], m)
	}
}

func (o *oracle) metric(registered semconv.Metric, m metricdata.Metrics) {
	if m.Unit != registered.Unit || m.Description != registered.Description {
		o.complain("metric %s: unit %q and description %q", m.Name, m.Unit, m.Description)
	}
	var kind semconv.Kind
	isInt := false
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		kind, isInt = sumKind(o, m.Name, data.IsMonotonic, data.Temporality), true
		points(o, registered, data.DataPoints)
	case metricdata.Sum[float64]:
		kind = sumKind(o, m.Name, data.IsMonotonic, data.Temporality)
		points(o, registered, data.DataPoints)
	case metricdata.Gauge[int64]:
		kind, isInt = semconv.Gauge, true
		points(o, registered, data.DataPoints)
	case metricdata.Gauge[float64]:
		kind = semconv.Gauge
		points(o, registered, data.DataPoints)
	case metricdata.Histogram[float64]:
		kind = semconv.Histogram
		var plain []metricdata.DataPoint[float64]
		for _, p := range data.DataPoints {
			plain = append(plain, metricdata.DataPoint[float64]{Attributes: p.Attributes, StartTime: p.StartTime, Time: p.Time})
		}
		points(o, registered, plain)
	case metricdata.ExponentialHistogram[float64]:
		kind = semconv.Histogram
		var plain []metricdata.DataPoint[float64]
		for _, p := range data.DataPoints {
			plain = append(plain, metricdata.DataPoint[float64]{Attributes: p.Attributes, StartTime: p.StartTime, Time: p.Time})
		}
		points(o, registered, plain)
	default:
		o.complain("metric %s: holds a %T", m.Name, m.Data)
		return
	}
	if kind != registered.Kind || isInt != registered.Int {
		o.complain("metric %s: emitted as %v (int: %v), registered as %v (int: %v)", m.Name, kind, isInt, registered.Kind,
			registered.Int)
	}
}

func sumKind(o *oracle, name string, monotonic bool, t metricdata.Temporality) semconv.Kind {
	if t != metricdata.CumulativeTemporality {
		o.complain("metric %s: temporality %v", name, t)
	}
	if monotonic {
		return semconv.Counter
	}
	return semconv.UpDownCounter
}

func points[N int64 | float64](o *oracle, registered semconv.Metric, list []metricdata.DataPoint[N]) {
	place := "metric " + registered.Name
	if len(list) == 0 {
		o.complain("%s: no points", place)
	}
	sets := map[attribute.Distinct]bool{}
	for _, p := range list {
		o.attributes(place, signals.OfMetrics[registered.Name], p.Attributes.ToSlice())
		if sets[p.Attributes.Equivalent()] {
			o.complain("%s: two points with the attributes %s", place, p.Attributes.Encoded(attribute.DefaultEncoder()))
		}
		sets[p.Attributes.Equivalent()] = true
		switch {
		case p.Time.IsZero():
			o.complain("%s: a point without a time", place)
		case registered.Kind == semconv.Gauge && !p.StartTime.IsZero():
			o.complain("%s: a gauge with a start", place)
		case registered.Kind != semconv.Gauge && (p.StartTime.IsZero() || !p.StartTime.Before(p.Time)):
			o.complain("%s: a point from %v to %v", place, p.StartTime, p.Time)
		}
	}
}

// span checks a window's span and its children.
func (o *oracle) span(r *window.Report, s emit.Span) {
	shape := signals.Window
	switch r.Kind {
	case window.ModelLoad:
		shape = signals.Load
	case window.Epoch:
		shape = signals.Epoch
	}
	o.oneSpan(shape, s)
	if s.Name != emit.SpanName(&r.Window, config.Spans{}) {
		o.complain("span %s: the name %q changed since it began", shape.Type, s.Name)
	}
	for i, child := range s.Children {
		if phases := len(r.PhaseReports); i >= len(s.Children)-phases {
			if child.Start.Before(s.Start) || child.End.After(s.End) {
				o.complain("span %s: phase %q lies outside", shape.Type, child.Name)
			}
			o.oneSpan(signals.LoadPhase, child)
			continue
		}
		if !strings.HasPrefix(child.Name, "storage stall") || child.Start.Before(s.Start) || child.End.After(s.End) {
			o.complain("span %s: child %q lies outside", shape.Type, child.Name)
		}
		o.oneSpan(signals.StorageStall, child)
	}
}

func (o *oracle) oneSpan(shape signals.Span, s emit.Span) {
	o.attributes("span "+shape.Type, shape.Attributes, s.Attributes)
	kind := trace.SpanKindInternal
	if shape.Client && slices.ContainsFunc(s.Attributes, func(kv attribute.KeyValue) bool {
		return kv.Key == semconv.ServicePeerNameKey
	}) {
		kind = trace.SpanKindClient
	}
	if got := trace.ValidateSpanKind(s.Kind); got != kind {
		o.complain("span %s: of kind %v, want %v", shape.Type, got, kind)
	}
	if !s.Start.Before(s.End) {
		o.complain("span %s: from %v to %v", shape.Type, s.Start, s.End)
	}
	for _, e := range s.Events {
		if e.Time.Before(s.Start) || e.Time.After(s.End) {
			o.complain("event %s: outside of its span", e.Name)
		}
		o.event(e)
	}
}

func (o *oracle) event(e emit.Event) {
	i := slices.IndexFunc(semconv.Events, func(r semconv.Event) bool { return r.Name == e.Name })
	if i < 0 {
		o.complain("event %s is not registered", e.Name)
		return
	}
	o.attributes("event "+e.Name, semconv.Events[i].Attributes, e.Attributes)
}
