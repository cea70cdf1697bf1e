package otlp_test

import (
	"bytes"
	"reflect"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

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

func TestAttributes(t *testing.T) {
	for _, test := range []struct {
		value attribute.Value
		want  any
	}{
		{attribute.BoolValue(true), true},
		{attribute.Int64Value(-1 << 63), int64(-1 << 63)},
		{attribute.Float64Value(0.1), 0.1},
		{attribute.StringValue("text"), "text"},
		{attribute.StringSliceValue([]string{"a", "ä"}), []any{"a", "ä"}},
		{attribute.StringSliceValue(nil), []any{}},
	} {
		to := pcommon.NewMap()
		to.PutStr("key", "before")
		to.PutStr("other", "stays")
		otlp.Attributes([]attribute.KeyValue{{Key: "", Value: test.value}, {Key: "key", Value: test.value}}, to)
		if want := map[string]any{"key": test.want, "other": "stays"}; !reflect.DeepEqual(to.AsRaw(), want) {
			t.Errorf("%v became %v, want %v", test.value, to.AsRaw(), want)
		}
	}
}

func TestScopeWithoutMetrics(t *testing.T) {
	to := pmetric.NewResourceMetrics()
	new(otlp.Writer).Metrics(metricdata.ScopeMetrics{Scope: emit.Scope(version)}, to)
	if to.ScopeMetrics().Len() != 0 {
		t.Errorf("got %d scopes, want none", to.ScopeMetrics().Len())
	}
}

// The cache of a Writer does not share memory with the output, and it is bounded.
func TestWriterRemembers(t *testing.T) {
	var w otlp.Writer
	write := func(i int) pmetric.ResourceMetrics {
		to := pmetric.NewResourceMetrics()
		w.Metrics(metricdata.ScopeMetrics{Metrics: []metricdata.Metrics{{Name: "m", Data: metricdata.Gauge[int64]{
			DataPoints: []metricdata.DataPoint[int64]{{Attributes: attribute.NewSet(attribute.String("device",
				strconv.Itoa(i)))}},
		}}}}, to)
		return to
	}
	device := func(m pmetric.ResourceMetrics) pcommon.Value {
		v, _ := m.ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints().At(0).Attributes().Get("device")
		return v
	}
	for i := range 20000 {
		for range 2 {
			got := device(write(i))
			if got.Str() != strconv.Itoa(i) {
				t.Fatalf("device %d became %s", i, got.Str())
			}
			got.SetStr("changed")
		}
	}
	if n := w.Known(); n > 8192 {
		t.Errorf("remembers %d sets", n)
	}
}

func spanContext(remote bool) trace.SpanContext {
	state, _ := trace.ParseTraceState("vendor=1")
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled | trace.FlagsRandom,
		TraceState: state, Remote: remote,
	})
}

// A failure of ours does not replace one of the program.
func TestFail(t *testing.T) {
	for before, want := range map[string]string{"": "slow", "out of memory": "out of memory"} {
		status := ptrace.NewStatus()
		if before != "" {
			status.SetCode(ptrace.StatusCodeError)
			status.SetMessage(before)
		}
		otlp.Fail("", status)
		if got := status.Message(); got != before {
			t.Errorf("%q: got %q without a failure", before, got)
		}
		otlp.Fail("slow", status)
		if got := status.Message(); got != want || status.Code() != ptrace.StatusCodeError {
			t.Errorf("%q: got %v %q, want %q", before, status.Code(), got, want)
		}
	}
}

// Spans are held against the SDK's in TestParity. Here is what only the Collector has: spans that are there already.
func TestChildren(t *testing.T) {
	to := ptrace.NewSpanSlice()
	parent := to.AppendEmpty()
	parent.SetTraceID(pcommon.TraceID{1})
	parent.SetSpanID(pcommon.SpanID{2})
	parent.SetFlags(0x303) // sampled, random, its own parent is remote
	parent.TraceState().FromRaw("vendor=1")
	s := nestedSpan()
	otlp.Children(s.Children, parent, to)
	if to.Len() != 4 {
		t.Fatalf("%d spans", to.Len())
	}
	ids := map[pcommon.SpanID]bool{}
	for i, want := range []struct {
		name   string
		parent pcommon.SpanID
	}{{"first", parent.SpanID()}, {"second", parent.SpanID()}, {"third", to.At(2).SpanID()}} {
		child := to.At(i + 1)
		ids[child.SpanID()] = true
		if child.Name() != want.name || child.ParentSpanID() != want.parent || child.TraceID() != parent.TraceID() ||
			child.TraceState().AsRaw() != "vendor=1" || child.Flags() != 0x103 || child.Kind() != ptrace.SpanKindInternal {
			t.Errorf("child %d: %s below %s, flags %#x", i, child.Name(), child.ParentSpanID(), child.Flags())
		}
	}
	if len(ids) != 3 || ids[parent.SpanID()] || ids[pcommon.SpanID{}] {
		t.Errorf("ids: %v", ids)
	}
}

func TestRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		span := spanContext(true)
		all := plog.NewLogRecordSlice()
		otlp.Record(emit.Event{Name: "lost", Time: booted, Severity: emit.Warn, Attributes: someAttributes()}, span, all)
		otlp.Record(emit.Event{Name: "bare"}, trace.SpanContext{}, all)
		now := pcommon.NewTimestampFromTime(time.Now())
		r := all.At(0)
		if r.EventName() != "lost" || r.Timestamp() != pcommon.NewTimestampFromTime(booted) || r.ObservedTimestamp() != now ||
			r.SeverityNumber() != plog.SeverityNumberWarn || r.SeverityText() != "WARN" ||
			r.Attributes().Len() != len(someAttributes()) ||
			r.Body().Type() != pcommon.ValueTypeEmpty {
			t.Errorf("%q at %v, observed at %v, %s", r.EventName(), r.Timestamp(), r.ObservedTimestamp(), r.SeverityText())
		}
		if r.TraceID() != pcommon.TraceID(span.TraceID()) || r.SpanID() != pcommon.SpanID(span.SpanID()) || r.Flags() != 3 {
			t.Errorf("in trace %s and span %s, flags %d", r.TraceID(), r.SpanID(), r.Flags())
		}
		r = all.At(1)
		if r.EventName() != "bare" || r.Timestamp() != 0 || r.SeverityNumber() != plog.SeverityNumberInfo ||
			r.SeverityText() != "INFO" ||
			!r.TraceID().IsEmpty() || !r.SpanID().IsEmpty() || r.Flags() != 0 {
			t.Errorf("%q at %v, %s, in trace %s", r.EventName(), r.Timestamp(), r.SeverityText(), r.TraceID())
		}
	})
}

// Ids of exemplars that are no ids are left out; times before 1970 are unknown.
func TestMalformed(t *testing.T) {
	to := pmetric.NewResourceMetrics()
	new(otlp.Writer).Metrics(metricdata.ScopeMetrics{Metrics: []metricdata.Metrics{{Data: metricdata.Gauge[float64]{
		DataPoints: []metricdata.DataPoint[float64]{{
			Time:      time.Date(1969, 1, 1, 0, 0, 0, 0, time.UTC),
			Exemplars: []metricdata.Exemplar[float64]{{TraceID: []byte{1}, SpanID: bytes.Repeat([]byte{1}, 9)}},
		}},
	}}}}, to)
	point := to.ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints().At(0)
	if e := point.Exemplars().At(0); !e.TraceID().IsEmpty() || !e.SpanID().IsEmpty() || point.Timestamp() != 0 {
		t.Errorf("got ids %s, %s and time %v, want all of them empty", e.TraceID(), e.SpanID(), point.Timestamp())
	}
}
