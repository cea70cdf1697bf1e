//go:build linux && (amd64 || arm64)

package processor

import (
	"cmp"
	"math"
	"runtime/debug"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.uber.org/zap"
	"golang.org/x/time/rate"

	"github.com/stallspan/stallspan/internal/config"
	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/emit/otlp"
	"github.com/stallspan/stallspan/internal/identity/locate"
	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/semconv"
)

// annotator annotates spans with the reports of a monitor. It is safe for concurrent use with different spans.
type annotator struct {
	monitor    *monitor.Monitor
	locator    *locate.Locator
	conditions conditions
	show       config.Spans
	scope      instrumentation.Scope
	log        *zap.Logger
	silent     bool // logs no failing conditions

	panics, failures rate.Sometimes // at most one message a minute

	nested nested
}

// annotate annotates a batch. It never drops a span.
func (a *annotator) annotate(batch ptrace.Traces) (t tally) {
	for _, rs := range batch.ResourceSpans().All() {
		p := &pass{annotator: a, tally: &t, resource: rs}
		var chosen []choice
		for _, ss := range rs.ScopeSpans().All() {
			if ss.Scope().Name() == emit.ScopeName {
				continue // our own spans: they have a verdict, or are children
			}
			for _, span := range ss.Spans().All() {
				if k, ok := p.choose(ss, span); ok {
					chosen = append(chosen, choice{span, k})
				}
			}
		}
		slices.SortStableFunc(chosen, func(a, b choice) int { // children before their parents
			return cmp.Or(cmp.Compare(a.EndTimestamp(), b.EndTimestamp()), cmp.Compare(b.StartTimestamp(), a.StartTimestamp()))
		})
		for _, c := range chosen {
			p.span(c.kind, c.Span)
		}
	}
	return t
}

// choice is a span to annotate, with its stallspan.window.kind, or "".
type choice struct {
	ptrace.Span
	kind window.Kind
}

// pass annotates the spans of one resource.
type pass struct {
	*annotator
	tally    *tally
	resource ptrace.ResourceSpans
	who      *locate.Who        // where the resource is; nil until it is needed
	own      *ptrace.ScopeSpans // for the children of all spans; nil until it is needed
}

// choose reports whether to annotate a span, and returns its stallspan.window.kind, or "".
func (p *pass) choose(ss ptrace.ScopeSpans, span ptrace.Span) (window.Kind, bool) {
	k := kindOf(span, p.tally.ignore)
	_, done := span.Attributes().Get(string(semconv.VerdictKey))
	return k, (k != "" || p.conditions.met(p.resource, ss, span, p.failed)) && !done
}

// span annotates a span, or leaves it unchanged.
func (p *pass) span(k window.Kind, span ptrace.Span) {
	defer func() {
		if cause := recover(); cause != nil {
			p.tally.skip(failed)
			sample.CountPanic()
			p.panics.Do(func() {
				p.log.Error("a panic: the span is passed on without a full annotation; please report this",
					zap.String("span", span.Name()), zap.Any("panic", cause), zap.ByteString("stack", debug.Stack()))
			})
		}
	}()
	r := p.report(k, span)
	if r == nil {
		return
	}
	p.write(r, span)
	p.tally.annotated++
}

// failed counts and logs a condition that returned an error.
func (p *pass) failed(c *condition, err error) {
	p.tally.conditions++
	if !p.silent {
		p.failures.Do(func() {
			p.log.Warn("a condition failed on a span and is not met", zap.Stringer("condition", c), zap.Error(err))
		})
	}
}

// report returns the report of the span's time, or nil.
func (p *pass) report(k window.Kind, span ptrace.Span) *window.Report {
	f := facts{span.Attributes(), p.resource.Resource().Attributes(), p.tally.ignore}
	place, local := p.locator.Find(p.origin())
	if !local {
		p.tally.foreign++
		return nil
	}
	if span.StartTimestamp() > math.MaxInt64 || span.EndTimestamp() > math.MaxInt64 { // after the year 2262
		p.tally.skip("future")
		return nil
	}
	w := describe(k, span, f)
	owner := p.monitor.Owners.Client(place.PID)
	w.Client = p.client(owner)
	w.Start = sample.Stamp{Wall: span.StartTimestamp().AsTime()}
	w.End = sample.Stamp{Wall: span.EndTimestamp().AsTime()}
	if err := p.monitor.Spans.Place(&w); err != nil {
		p.tally.skip(reason(err))
		return nil
	}
	if place.PID > 0 {
		w.Job = p.monitor.Jobs.AutoFollow(owner, place.PID, place.Cgroup, place.Own)
	}
	return p.monitor.Spans.Report(w)
}

// origin returns the host, container and process of the spans, by their resource. What a span itself says is no proof:
// a Collector can replace what a resource claims by what it knows of the connection, and does not do so for spans.
func (p *pass) origin() locate.Who {
	if p.who == nil {
		resource := facts{pcommon.NewMap(), p.resource.Resource().Attributes(), p.tally.ignore}
		p.who = &locate.Who{
			HostName:    resource.text(semconv.HostNameKey),
			HostID:      resource.text(semconv.HostIDKey),
			NodeName:    resource.text(nodeName),
			ContainerID: resource.text(containerID),
			PID:         resource.pid(),
		}
	}
	return *p.who
}

// client returns whose baselines a span is compared with: those of its namespace in Kubernetes, where each start makes
// new containers, and else those of all spans that name a process of that owner. Any program may name any process, so
// the owner's own windows have other baselines.
func (p *pass) client(owner string) string {
	resource := facts{pcommon.NewMap(), p.resource.Resource().Attributes(), p.tally.ignore}
	if namespace := resource.text(namespaceName); namespace != "" {
		return "namespace " + namespace[:min(len(namespace), maxNamespace)]
	}
	return "spans of " + cmp.Or(owner, "root")
}

// maxNamespace is the longest name of a namespace in Kubernetes, in bytes.
const maxNamespace = 63

// Attributes of OpenTelemetry that are read only.
const (
	containerID   = attribute.Key("container.id")
	nodeName      = attribute.Key("k8s.node.name")
	namespaceName = attribute.Key("k8s.namespace.name")
)

// write adds the report to the span. Existing attributes stay unchanged.
func (p *pass) write(r *window.Report, span ptrace.Span) {
	s := emit.WindowSpan(r, p.show)
	p.nested.once(r.Kind, span, &s)
	added := slices.DeleteFunc(s.Attributes, func(kv attribute.KeyValue) bool {
		_, exists := span.Attributes().Get(string(kv.Key))
		return exists
	})
	otlp.Attributes(added, span.Attributes())
	otlp.Events(s.Events, span.Events())
	otlp.Fail(s.Failure, span.Status())
	if len(s.Children) > 0 {
		otlp.Children(s.Children, span, p.children())
	}
}

// children returns the slice for child spans, in a scope of our own.
func (p *pass) children() ptrace.SpanSlice {
	if p.own == nil {
		own := p.resource.ScopeSpans().AppendEmpty()
		otlp.Scope(p.scope, own.Scope())
		own.SetSchemaUrl(p.scope.SchemaURL)
		p.own = &own
	}
	return p.own.Spans()
}
