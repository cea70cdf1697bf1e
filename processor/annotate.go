package processor

import (
	"math"
	"runtime/debug"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.uber.org/zap"

	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/locate"
	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/otlp"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/semconv"
)

// annotator writes onto spans what a monitor knows about their time. It may be used by several goroutines at once, for
// different spans.
type annotator struct {
	monitor     *monitor.Monitor
	locator     *locate.Locator
	conditions  conditions
	slowIsError bool
	scope       instrumentation.Scope
	log         *zap.Logger
	silent      bool // about conditions that fail

	panics, failures seldom
}

// annotate goes through a batch. Whatever happens, no span is lost.
func (a *annotator) annotate(batch ptrace.Traces) (t tally) {
	for _, rs := range batch.ResourceSpans().All() {
		p := &pass{annotator: a, tally: &t, resource: rs}
		for i := range rs.ScopeSpans().Len() { // those that were there; our own scope may come behind them
			ss := rs.ScopeSpans().At(i)
			if ss.Scope().Name() == emit.ScopeName {
				continue // Stallspan's own spans: they are annotated, or are what other spans were annotated with
			}
			for _, span := range ss.Spans().All() {
				p.span(ss, span)
			}
		}
	}
	return t
}

// pass is one resource's way through the processor.
type pass struct {
	*annotator
	tally    *tally
	resource ptrace.ResourceSpans
	host     *locate.Who // what the resource says of its host; nil until it is needed
	own      *ptrace.ScopeSpans
}

// span annotates one span, or leaves it as it is.
func (p *pass) span(ss ptrace.ScopeSpans, span ptrace.Span) {
	defer func() {
		if cause := recover(); cause != nil {
			p.tally.skip(failed)
			if p.panics.due() {
				p.log.Error("a span is passed on without an annotation, or with a part of it: please report this",
					zap.String("span", span.Name()), zap.Any("panic", cause), zap.ByteString("stack", debug.Stack()))
			}
		}
	}()
	k := kind(span, p.tally.ignore)
	if k == "" && !p.conditions.met(p.resource, ss, span, p.failed) {
		return
	}
	if _, done := span.Attributes().Get(string(semconv.VerdictKey)); done {
		return
	}
	r := p.report(k, span)
	if r == nil {
		return
	}
	p.write(r, span)
	p.tally.annotated++
}

// failed takes note of a condition that gave an error.
func (p *pass) failed(c *condition, err error) {
	p.tally.conditions++
	if !p.silent && p.failures.due() {
		p.log.Warn("a condition failed on a span and counts as not met there", zap.Stringer("condition", c), zap.Error(err))
	}
}

// report is what the history says of the span's time: nil where it says nothing.
func (p *pass) report(k window.Kind, span ptrace.Span) *window.Report {
	f := facts{span.Attributes(), p.resource.Resource().Attributes(), p.tally.ignore}
	place, local := p.locator.Find(p.who(f))
	if !local {
		p.tally.foreign++
		return nil
	}
	if span.StartTimestamp() > math.MaxInt64 || span.EndTimestamp() > math.MaxInt64 { // after 2262: no time.Time
		p.tally.skip("future")
		return nil
	}
	w := describe(k, span, f)
	w.Start, w.End = sample.Stamp{Wall: span.StartTimestamp().AsTime()}, sample.Stamp{Wall: span.EndTimestamp().AsTime()}
	if err := p.monitor.Spans.Place(&w); err != nil {
		p.tally.skip(reason(err))
		return nil
	}
	if place.PID > 0 {
		w.Job = p.monitor.Jobs.AutoFollow(place.PID, place.Cgroup, place.Own)
	}
	return p.monitor.Spans.Report(w)
}

// who is what the span and its resource say of where the span was made.
func (p *pass) who(f facts) locate.Who {
	if p.host == nil {
		resource := facts{pcommon.NewMap(), f.resource, f.ignored}
		p.host = &locate.Who{
			HostName: resource.text(semconv.HostNameKey), HostID: resource.text(semconv.HostIDKey), NodeName: resource.text(nodeName),
		}
	}
	who := *p.host
	who.ContainerID, who.PID = f.text(containerID), f.pid()
	return who
}

// OpenTelemetry's names that Stallspan reads and never writes.
const (
	containerID = attribute.Key("container.id")
	nodeName    = attribute.Key("k8s.node.name")
)

// write adds the report to the span. What the span has already stays as it is.
func (p *pass) write(r *window.Report, span ptrace.Span) {
	s := emit.WindowSpan(r)
	added := slices.DeleteFunc(s.Attributes, func(kv attribute.KeyValue) bool {
		_, there := span.Attributes().Get(string(kv.Key))
		return there
	})
	otlp.Attributes(added, span.Attributes())
	otlp.Events(s.Events, span.Events())
	if p.slowIsError && r.Slow && span.Status().Code() != ptrace.StatusCodeError {
		span.Status().SetCode(ptrace.StatusCodeError)
		span.Status().SetMessage(r.Finding)
	}
	if len(s.Children) > 0 {
		otlp.Children(s.Children, span, p.children())
	}
}

// children is where the resource's children of spans go.
func (p *pass) children() ptrace.SpanSlice {
	if p.own == nil {
		own := p.resource.ScopeSpans().AppendEmpty()
		otlp.Scope(p.scope, own.Scope())
		own.SetSchemaUrl(p.scope.SchemaURL)
		p.own = &own
	}
	return p.own.Spans()
}
