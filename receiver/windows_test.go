//go:build linux && (amd64 || arm64)

package receiver

import (
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/window"
)

const (
	caller    = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	unsampled = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
)

func begin(t *testing.T, c *Config, a api.Announcement) api.Begun {
	t.Helper()
	begun, err := api.NewClient(c.Socket).Begin(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	return begun
}

func end(t *testing.T, c *Config, id string) {
	t.Helper()
	if _, err := api.NewClient(c.Socket).End(t.Context(), id); err != nil {
		t.Fatal(err)
	}
}

func (p *pipelines) spans() (all []ptrace.Span) {
	for _, traces := range p.AllTraces() {
		for _, r := range traces.ResourceSpans().All() {
			for _, s := range r.ScopeSpans().All() {
				for _, span := range s.Spans().All() {
					all = append(all, span)
				}
			}
		}
	}
	return all
}

func (p *pipelines) logRecords() (all []plog.LogRecord) {
	for _, logs := range p.AllLogs() {
		for _, r := range logs.ResourceLogs().All() {
			for _, s := range r.ScopeLogs().All() {
				for _, record := range s.LogRecords().All() {
					all = append(all, record)
				}
			}
		}
	}
	return all
}

func value(m pcommon.Map, key string) string {
	if v, ok := m.Get(key); ok {
		return v.AsString()
	}
	return ""
}

func TestAnnouncedWindow(t *testing.T) {
	c := laboratory(t)
	p := in(t, NewFactory(), settings(), c, "metrics", "traces", "logs")
	p.start(t)
	begun := begin(t, c, api.Announcement{Kind: window.ModelLoad, Model: "llama", Traceparent: caller})
	own, err := emit.ParseTraceparent(begun.Traceparent)
	if err != nil || own.TraceID().String() != caller[3:35] || !own.IsSampled() {
		t.Errorf("announced window: got %v, %v, want it sampled in the trace of the caller", begun, err)
	}
	end(t, c, begun.ID)
	eventually(t, "a span", func() bool { return p.SpanCount() > 0 })
	span := p.spans()[0]
	if span.Name() != "load llama" || span.TraceID().String() != caller[3:35] ||
		span.ParentSpanID().String() != caller[36:52] ||
		span.SpanID().String() != own.SpanID().String() || span.Status().Code() != ptrace.StatusCodeUnset {
		t.Errorf("span: got %+v, want load llama below the caller", span)
	}
	if value(span.Attributes(), "stallspan.verdict") == "" ||
		value(span.Attributes(), "stallspan.window.kind") != "model_load" {
		t.Errorf("span: got %v, want a verdict and the kind model_load", attributes(span.Attributes()))
	}
	r := p.AllTraces()[0].ResourceSpans().At(0)
	scope := r.ScopeSpans().At(0)
	if got := keys(r.Resource().Attributes()); got != "host.name,process.pid,service.instance.id,service.name" ||
		scope.Scope().Name() != emit.ScopeName || scope.Scope().Version() != "1.2.3" || scope.SchemaUrl() == "" {
		t.Errorf("got resource %s and scope %v, %q, want those of this process", got, scope.Scope(), scope.SchemaUrl())
	}
	eventually(t, "the window in the histogram, with its span", func() bool {
		for _, m := range p.AllMetrics() {
			if exemplar := durations(m); exemplar == span.SpanID() {
				return true
			}
		}
		return false
	})
}

// durations is the span of the first exemplar of a histogram.
func durations(all pmetric.Metrics) (id pcommon.SpanID) {
	for _, r := range all.ResourceMetrics().All() {
		for _, s := range r.ScopeMetrics().All() {
			for _, m := range s.Metrics().All() {
				if m.Type() == pmetric.MetricTypeHistogram && m.Histogram().DataPoints().At(0).Exemplars().Len() > 0 {
					return m.Histogram().DataPoints().At(0).Exemplars().At(0).SpanID()
				}
			}
		}
	}
	return id
}

// A window in an unsampled trace has no span, and neither has a window without a traces pipeline.
func TestNoSpan(t *testing.T) {
	c := laboratory(t)
	p := in(t, NewFactory(), settings(), c, "traces")
	p.start(t)
	begun := begin(t, c, api.Announcement{Kind: window.Epoch, Traceparent: unsampled})
	if own, err := emit.ParseTraceparent(begun.Traceparent); err != nil || own.IsSampled() ||
		own.TraceID().String() != unsampled[3:35] {
		t.Errorf("announced window: got %v, %v, want it unsampled in the trace of the caller", begun, err)
	}
	end(t, c, begun.ID)
	p.stop(t)
	if p.SpanCount() != 0 {
		t.Error("an unsampled span")
	}

	c = laboratory(t)
	p = in(t, NewFactory(), settings(), c, "logs")
	p.start(t)
	if begun := begin(t, c, api.Announcement{Kind: window.Epoch, Traceparent: caller}); begun.Traceparent != caller {
		t.Errorf("traceparent without spans: got %s, want the caller's own", begun.Traceparent)
	}
	if begun := begin(t, c, api.Announcement{Kind: window.Epoch}); begun.Traceparent == "" {
		t.Error("no trace for the caller's spans")
	}
}

// slow is a window that waited for storage for most of its time.
func slow() emit.Span {
	at := time.Now().Add(-time.Minute)
	return emit.Span{
		Name: "load llama", Start: at, End: at.Add(time.Minute),
		Events:   []emit.Event{{Name: "stallspan.window.slow", Time: at.Add(time.Second), Severity: emit.Warn}},
		Children: []emit.Span{{Name: "storage stall sda", Start: at, End: at.Add(time.Second)}},
	}
}

// The span of a job's window and its children have the resource that the metrics of the job have.
func TestWindowOfAJob(t *testing.T) {
	p := &pipelines{}
	w := newReceiver(settings(), laboratory(t))
	if err := w.addTraces(settings(), &p.TracesSink); err != nil {
		t.Fatal(err)
	}
	if err := w.Start(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	pod := []attribute.KeyValue{attribute.String("k8s.pod.name", "llm-0")}
	for _, job := range []*emit.Job{nil, {ID: "7", Attributes: pod}} {
		s := slow()
		s.Job = job
		w.begin(s.Name, time.Now(), trace.SpanContext{}).End(s)
	}
	if err := w.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	spans := map[string]int{} // by the pod of their resource
	for _, traces := range p.AllTraces() {
		for _, r := range traces.ResourceSpans().All() {
			spans[value(r.Resource().Attributes(), "k8s.pod.name")] += r.ScopeSpans().At(0).Spans().Len()
			if value(r.Resource().Attributes(), "host.name") == "" {
				t.Error("got a resource without the machine")
			}
		}
	}
	if len(spans) != 2 || spans[""] != 2 || spans["llm-0"] != 2 {
		t.Errorf("got %v, want two spans of this program and two of the job", spans)
	}
}

func TestSlowWindow(t *testing.T) {
	parent, err := emit.ParseTraceparent(caller)
	if err != nil {
		t.Fatal(err)
	}
	for kinds, spanID := range map[string]string{"traces logs": "", "logs": caller[36:52]} {
		p := &pipelines{}
		w := newReceiver(settings(), laboratory(t))
		if err := w.addLogs(settings(), &p.LogsSink); err != nil {
			t.Fatal(err)
		}
		if kinds != "logs" {
			if err := w.addTraces(settings(), &p.TracesSink); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Start(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		span := w.begin("load llama", time.Now(), parent)
		span.End(slow())
		if err := w.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		if spanID == "" {
			spanID = span.SpanContext().SpanID().String()
			if spans := p.spans(); len(spans) != 2 || spans[0].Events().Len() != 1 ||
				spans[1].ParentSpanID().String() != spanID {
				t.Errorf("%d spans", len(spans))
			}
		}
		records := p.logRecords()
		if len(records) != 1 || records[0].EventName() != "stallspan.window.slow" || records[0].SpanID().String() != spanID ||
			records[0].TraceID().String() != caller[3:35] || records[0].SeverityNumber() != plog.SeverityNumberWarn {
			t.Errorf("%s: got %v, want one stallspan.window.slow in the span", kinds, records)
		}
		resource := p.AllLogs()[0].ResourceLogs().At(0).Resource()
		if got := keys(resource.Attributes()); got != "host.name,service.instance.id,service.name" {
			t.Errorf("resource: got %s, want no process", got)
		}
	}
}
