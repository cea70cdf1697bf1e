package export

import (
	"context"
	"encoding/hex"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"

	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/emit/queue"
	"github.com/stallspan/stallspan/internal/identity/locate"
	"github.com/stallspan/stallspan/semconv"
)

// patience is for how long a test waits before it calls something stuck.
const patience = 30 * time.Second

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// canceled returns a context that has ended.
func canceled(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// someMetrics is one counter, with a time of its own.
func someMetrics(version string, at time.Time) metricdata.ScopeMetrics {
	return metricdata.ScopeMetrics{Scope: emit.Scope(version), Metrics: []metricdata.Metrics{{
		Name: semconv.SystemDiskIO.Name, Unit: semconv.SystemDiskIO.Unit,
		Data: metricdata.Sum[int64]{Temporality: metricdata.CumulativeTemporality, IsMonotonic: true,
			DataPoints: []metricdata.DataPoint[int64]{{
				Attributes: attribute.NewSet(semconv.SystemDeviceNameKey.String("sda"), semconv.DiskIODirectionRead),
				StartTime:  at.Add(-time.Hour), Time: at, Value: 4096,
			}}},
	}}}
}

// someEpoch is a slow epoch with two stalls, like those of emit.
func someEpoch(start time.Time) emit.Span {
	s := emit.Span{
		Name: "epoch train.py", Start: start, End: start.Add(20 * time.Second),
		Attributes: []attribute.KeyValue{
			semconv.WindowKindKey.String("epoch"),
			semconv.SlowKey.Bool(true),
			semconv.TrainingEpochIndexKey.Int(3),
			semconv.DiskNamesKey.StringSlice([]string{"sda", "sdb"}),
			semconv.MountPointsKey.StringSlice([]string{"/data"}),
		},
		Events: []emit.Event{{Name: semconv.WindowSlowEvent.Name, Time: start.Add(4 * time.Second),
			Attributes: []attribute.KeyValue{semconv.SlownessReasonKey.String("storage_stall")}}},
	}
	for i := range 2 {
		from := start.Add(time.Duration(4+5*i) * time.Second)
		s.Children = append(s.Children, emit.Span{Name: "storage stall sda", Start: from, End: from.Add(3 * time.Second),
			Attributes: []attribute.KeyValue{semconv.StallStorageTimeKey.Float64(2.5)}})
	}
	return s
}

func TestArrives(t *testing.T) {
	for _, protocol := range []string{protocolGRPC, protocolHTTP} {
		t.Run(protocol, func(t *testing.T) {
			var b backend
			if protocol == protocolGRPC {
				b.serve(t, "", nil)
			} else {
				b.serveHTTP(t, 0, "")
			}
			environment(t, map[string]string{
				"OTEL_EXPORTER_OTLP_ENDPOINT":    "http://" + b.address,
				"OTEL_EXPORTER_OTLP_PROTOCOL":    protocol,
				"OTEL_EXPORTER_OTLP_HEADERS":     "x-tenant=blue%20team",
				"OTEL_EXPORTER_OTLP_COMPRESSION": "gzip",
				"OTEL_RESOURCE_ATTRIBUTES":       "deployment.environment.name=lab,service.instance.id=one",
			})
			start := time.Date(2026, 11, 3, 10, 0, 0, 123456789, time.UTC)
			e, err := New(t.Context(), Options{Version: "1.2.3", Collect: func() metricdata.ScopeMetrics {
				return someMetrics("1.2.3", start)
			}})
			if err != nil {
				t.Fatal(err)
			}
			parent, err := emit.ParseTraceparent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
			if err != nil {
				t.Fatal(err)
			}
			run := e.Begin("run", start, parent)
			epoch := e.Begin("epoch", start, run.SpanContext())
			epoch.End(someEpoch(start))
			never := e.Begin("never", start, run.SpanContext())
			never.Drop()
			never.End(emit.Span{Name: "never", End: start})
			if err := e.Flush(within(t, patience)); err != nil {
				t.Fatal(err)
			}
			run.End(emit.Span{Name: "run train.py", Start: start, End: start.Add(time.Minute)})
			stats := e.Close(within(t, patience))
			if stats.Lost() != "" || stats != (Stats{Spans: queue.Counts{Sent: 4}}) {
				t.Errorf("stats: got %+v (%s), want 4 spans and nothing lost", stats, stats.Lost())
			}
			if again := e.Close(within(t, patience)); again != stats {
				t.Errorf("closed again: %+v", again)
			}

			checkSpans(t, &b, parent, epoch, start)
			checkMetrics(t, &b, start)
			if b.headers["x-tenant"] != "blue team" {
				t.Errorf("headers: %v", b.headers)
			}
		})
	}
}

func checkSpans(t *testing.T, b *backend, parent trace.SpanContext, epoch *Open, start time.Time) {
	t.Helper()
	found := b.all()
	if len(found["run train.py"]) != 1 || len(found["epoch train.py"]) != 1 || len(found["storage stall sda"]) != 2 ||
		len(found) != 3 {
		t.Fatalf("spans: %v", found)
	}
	run, window := found["run train.py"][0], found["epoch train.py"][0]
	if got := hex.EncodeToString(run.ParentSpanId); got != parent.SpanID().String() {
		t.Errorf("the run's parent is %s", got)
	}
	if string(window.ParentSpanId) != string(run.SpanId) {
		t.Error("the epoch is no child of the run")
	}
	if want := epoch.SpanContext().SpanID(); string(window.SpanId) != string(want[:]) {
		t.Error("the epoch's id changed")
	}
	for i, s := range found["storage stall sda"] {
		from := start.Add(time.Duration(4+5*i) * time.Second)
		if string(s.ParentSpanId) != string(window.SpanId) || s.StartTimeUnixNano != uint64(from.UnixNano()) ||
			s.EndTimeUnixNano != uint64(from.Add(3*time.Second).UnixNano()) || len(s.Attributes) != 1 {
			t.Errorf("stall %d: %v", i, s)
		}
	}
	for _, s := range []interface{ GetTraceId() []byte }{run, window, found["storage stall sda"][0]} {
		if got := hex.EncodeToString(s.GetTraceId()); got != parent.TraceID().String() {
			t.Errorf("trace %s", got)
		}
	}
	if window.StartTimeUnixNano != uint64(start.UnixNano()) ||
		window.EndTimeUnixNano != uint64(start.Add(20*time.Second).UnixNano()) {
		t.Errorf("times of the epoch: %v", window)
	}
	if len(window.Events) != 1 || window.Events[0].Name != "stallspan.window.slow" ||
		window.Events[0].TimeUnixNano != uint64(start.Add(4*time.Second).UnixNano()) ||
		len(window.Events[0].Attributes) != 1 {
		t.Errorf("events: %v", window.Events)
	}
	if window.Kind != 1 || window.Status.GetCode() != 0 || len(window.Attributes) != 5 {
		t.Errorf("epoch: %v", window)
	}

	resource := values(b.spans[0].Resource.Attributes)
	checkResourceOf(t, resource)
	if resource["process.pid"] == "" {
		t.Error("no process.pid on spans")
	}
	scope := b.spans[0].ScopeSpans[0]
	if scope.Scope.Name != emit.ScopeName || scope.Scope.Version != "1.2.3" || scope.SchemaUrl != semconv.SchemaURL {
		t.Errorf("scope: %v %s", scope.Scope, scope.SchemaUrl)
	}
}

func checkMetrics(t *testing.T, b *backend, at time.Time) {
	t.Helper()
	if len(b.metrics) != 2 { // by Flush and by Close
		t.Fatalf("%d exports of metrics", len(b.metrics))
	}
	resource := values(b.metrics[1].Resource.Attributes)
	checkResourceOf(t, resource)
	if resource["process.pid"] != "" {
		t.Error("process.pid on metrics")
	}
	scope := b.metrics[1].ScopeMetrics[0]
	if scope.Scope.Name != emit.ScopeName || scope.Scope.Version != "1.2.3" || scope.SchemaUrl != semconv.SchemaURL {
		t.Errorf("scope: %v %s", scope.Scope, scope.SchemaUrl)
	}
	point := scope.Metrics[0].GetSum().DataPoints[0]
	if scope.Metrics[0].Name != "system.disk.io" || point.TimeUnixNano != uint64(at.UnixNano()) ||
		point.StartTimeUnixNano != uint64(at.Add(-time.Hour).UnixNano()) || point.GetAsInt() != 4096 {
		t.Errorf("metric: %v", scope.Metrics[0])
	}
}

func checkResourceOf(t *testing.T, got map[string]string) {
	t.Helper()
	for key, want := range map[string]string{
		"service.name": "stallspan", "service.instance.id": "one", "deployment.environment.name": "lab",
		"telemetry.sdk.name": "opentelemetry", "telemetry.sdk.language": "go",
		"host.id": locate.HostID(""), "host.name": locate.HostName(""),
	} {
		if got[key] != want {
			t.Errorf("%s is %q, want %q", key, got[key], want)
		}
	}
}

// values puts attributes as text; of a list, its first element.
func values(attrs []*commonpb.KeyValue) map[string]string {
	out := map[string]string{}
	for _, kv := range attrs {
		v := kv.Value
		if list := v.GetArrayValue().GetValues(); len(list) > 0 {
			v = list[0]
		}
		out[kv.Key] = v.GetStringValue()
		if out[kv.Key] == "" {
			out[kv.Key] = v.String()
		}
	}
	return out
}

// Without an endpoint nothing is there, and yet a child gets a trace to continue.
func TestNoEndpoint(t *testing.T) {
	for name, set := range map[string]map[string]string{
		"nothing":  {},
		"disabled": {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "True"},
		"none": {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER": "none",
			"OTEL_METRICS_EXPORTER": "none"},
		"meant for the program": {"OTEL_TRACES_SAMPLER": "xray", "OTEL_TRACES_EXPORTER": "console",
			"OTEL_METRICS_EXPORTER":       "prometheus",
			"OTEL_EXPORTER_OTLP_PROTOCOL": "http/json", "OTEL_RESOURCE_ATTRIBUTES": "?",
			"OTEL_EXPORTER_OTLP_CERTIFICATE": "/nowhere"},
	} {
		t.Run(name, func(t *testing.T) {
			environment(t, set)
			before := runtime.NumGoroutine()
			e, err := New(t.Context(), Options{Collect: func() metricdata.ScopeMetrics {
				t.Error("metrics were collected")
				return metricdata.ScopeMetrics{}
			}})
			if err != nil {
				t.Fatal(err)
			}
			root := e.Begin("run", time.Now(), trace.SpanContext{})
			if again, err := emit.ParseTraceparent(root.Traceparent()); err != nil || !again.IsSampled() {
				t.Errorf("traceparent: got %q, %v, want a sampled one", root.Traceparent(), err)
			}
			if root.Exemplar().IsValid() {
				t.Error("exemplar of a span that is not exported: got one, want none")
			}
			const outer = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
			parent, err := emit.ParseTraceparent(outer)
			if err != nil {
				t.Fatal(err)
			}
			if got := e.Begin("run", time.Now(), parent).Traceparent(); got != outer {
				t.Errorf("the program is given %s as its parent", got)
			}
			root.End(someEpoch(time.Now()))
			if now := runtime.NumGoroutine(); now > before {
				t.Errorf("%d goroutines more", now-before)
			}
			if err := e.Flush(t.Context()); err != nil {
				t.Error(err)
			}
			if stats := e.Close(t.Context()); stats != (Stats{}) || stats.Lost() != "" {
				t.Errorf("stats: got %+v, want none", stats)
			}
		})
	}
}

// An endpoint of one signal lets that signal out and no other.
func TestOneSignal(t *testing.T) {
	for _, signal := range []string{"TRACES", "METRICS"} {
		t.Run(signal, func(t *testing.T) {
			var b backend
			b.serve(t, "", nil)
			environment(t, map[string]string{
				"OTEL_EXPORTER_OTLP_" + signal + "_ENDPOINT": "http://" + b.address,
				"OTEL_SERVICE_NAME":                          "trainer",
				"OTEL_METRIC_EXPORT_INTERVAL":                "3600000",
			})
			e, err := New(t.Context(), Options{Collect: func() metricdata.ScopeMetrics { return someMetrics("", time.Now()) }})
			if err != nil {
				t.Fatal(err)
			}
			window := e.Begin("epoch", time.Now(), trace.SpanContext{})
			if window.Exemplar().IsValid() != (signal == "TRACES") {
				t.Error("the exemplar points to nothing, or is missing")
			}
			window.End(emit.Span{Name: "epoch", End: time.Now()})
			if lost := e.Close(within(t, patience)).Lost(); lost != "" {
				t.Errorf("lost: got %q, want nothing", lost)
			}
			if got := [2]bool{len(b.spans) > 0, len(b.metrics) > 0}; got != [2]bool{signal == "TRACES", signal == "METRICS"} {
				t.Errorf("spans, metrics: %v", got)
			}
			for _, r := range b.spans {
				if got := values(r.Resource.Attributes)["service.name"]; got != "trainer" {
					t.Errorf("service.name %s", got)
				}
			}
		})
	}
}

func TestSampler(t *testing.T) {
	var b backend
	b.serve(t, "", nil)
	environment(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://" + b.address,
		"OTEL_TRACES_SAMPLER": "always_off"})
	e, err := New(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	window := e.Begin("epoch", time.Now(), trace.SpanContext{})
	if !strings.HasSuffix(window.Traceparent(), "-00") && !strings.HasSuffix(window.Traceparent(), "-02") ||
		window.Exemplar().IsValid() {
		t.Errorf("traceparent %q, exemplar %v", window.Traceparent(), window.Exemplar())
	}
	window.End(someEpoch(time.Now()))
	if stats := e.Close(within(t, patience)); stats != (Stats{}) || len(b.spans) != 0 {
		t.Errorf("got stats %+v and %d spans, want none", stats, len(b.spans))
	}
}

func TestNilOpen(t *testing.T) {
	var o *Open
	o.End(emit.Span{})
	o.Drop()
	if o.SpanContext().IsValid() || o.Exemplar().IsValid() || o.Traceparent() != "" {
		t.Error("context of a nil span: got a valid one, want none")
	}
}
