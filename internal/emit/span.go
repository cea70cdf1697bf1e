// Package emit converts measurements to telemetry, once for all outputs: readings to metricdata, reports to spans of
// plain attributes, conditions to events. It uses neither the SDK's pipelines nor the Collector's pdata.
package emit

import (
	"context"
	"crypto/rand"
	"fmt"
	"math"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/internal/config"
	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/semconv"
)

// Span is an ended span without its place in a trace.
type Span struct {
	Name       string
	Kind       trace.SpanKind // trace.SpanKindUnspecified for internal
	Start, End time.Time
	Failure    string // the description of the status Error; "" for the status Unset
	Attributes []attribute.KeyValue
	Events     []Event
	Children   []Span
	Links      []trace.SpanContext
	Job        *Job // whose resource the span has, as its children; nil for that of this program
}

// Event is an event of a span, or a log record.
type Event struct {
	Name       string
	Time       time.Time
	Severity   Severity // of the log record, as is Body: an event of a span has neither
	Was        Severity // severity at the beginning, for an event that has ended
	Body       string
	Attributes []attribute.KeyValue
	ID         string            // unique; set by Identified
	Span       trace.SpanContext // the span of the event, or invalid; set by Identified
	Client     string            // whose window it is about, as window.Window.Client; not exported
}

// Severity is the importance of an event.
type Severity int

const (
	Info  Severity = iota
	Warn           // worth a look
	Error          // needs action
)

// String returns the severity text of log records.
func (s Severity) String() string {
	switch s {
	case Error:
		return "ERROR"
	case Warn:
		return "WARN"
	}
	return "INFO"
}

// UnmarshalText sets the severity of a config file.
func (s *Severity) UnmarshalText(text []byte) error {
	for _, known := range []Severity{Info, Warn, Error} {
		if strings.EqualFold(string(text), known.String()) {
			*s = known
			return nil
		}
	}
	return fmt.Errorf("%.40q is not a severity: choose info, warn or error", text)
}

// SpanName returns the name of a window's span. It is known when the window begins.
func SpanName(w *window.Window, show config.Spans) string { return UTF8(spanName(w, show)) }

func spanName(w *window.Window, show config.Spans) string {
	switch {
	case w.Kind == window.Epoch && w.HasEpoch && show.Indexed():
		return strings.TrimSpace(fmt.Sprintf("epoch %d %s", w.Epoch, w.Run))
	case w.Kind == window.ModelLoad && w.Model != "":
		return "load " + w.Model
	case w.Kind == window.ModelLoad:
		return "load"
	case w.Kind == window.Epoch && w.Run != "":
		return "epoch " + w.Run
	case w.Kind == window.Epoch:
		return "epoch"
	case w.Name != "":
		return string(w.Kind) + " " + w.Name
	default:
		return string(w.Kind)
	}
}

// WindowSpan returns the span of an ended window, with a child for each stall interval.
func WindowSpan(r *window.Report, show config.Spans) Span {
	s := Span{
		Name:  SpanName(&r.Window, show),
		Start: r.Start.Wall,
		End:   r.Start.Wall.Add(r.Duration()),
	}
	attrs := list(Attributes(r))
	attrs.text(semconv.URLKey, show.Link(s.Start, s.End, r.ID))
	s.Attributes = attrs
	if r.Slow {
		s.Events = []Event{slow(r, s.Name)}
		if show.SlowIsError() {
			s.Failure = UTF8(explain.Finding(r))
		}
	}
	for i := range r.Storms {
		s.Events = append(s.Events, storm(r, &r.Storms[i]))
	}
	s.Children = append(stallSpans(r, show.StallsAreCalls()), phaseSpans(r)...)
	if r.Who.ID != "" {
		s.Job = &Job{r.Who.ID, jobAttributes(r.Who.ID, &r.Who)}
		for i := range s.Children {
			s.Children[i].Job = s.Job
		}
	}
	return s
}

// phaseSpans returns the phases of a detected load, each with its own ledger.
func phaseSpans(r *window.Report) (spans []Span) {
	for i, part := range r.PhaseReports {
		p := &r.Phases[i]
		var attrs list
		attrs.add(semconv.LoadPhaseKey.String(p.Name))
		if p.Bytes > 0 {
			attrs.add(semconv.LoadSizeKey.Int64(int64(min(p.Bytes, math.MaxInt64))))
		}
		attrs.add(semconv.VerdictKey.String(string(part.Verdict)))
		if part.Split && len(part.GPUIDs) > 0 {
			attrs.add(semconv.WindowGPUBusyTimeKey.Float64(part.Busy.Seconds()))
			attrs.add(semconv.StallCPUTimeKey.Float64(part.CPU.Seconds()))
		} else if part.Split && !part.Unattributed() {
			attrs.add(semconv.ProcessOnCPUTimeKey.Float64(part.CPU.Seconds()))
		}
		if part.Split {
			attrs.add(semconv.StallStorageTimeKey.Float64(part.Storage.Seconds()))
			attrs.add(semconv.StallOtherTimeKey.Float64(part.Other.Seconds()))
		}
		spans = append(spans, Span{Name: UTF8(p.Name), Start: r.Wall(p.Start), End: r.Wall(p.End), Attributes: attrs})
	}
	return spans
}

// slow returns the event of a slow window, at the time when it exceeded its limit, or else began to wait.
func slow(r *window.Report, name string) Event {
	at := r.Start.Wall.Add(r.SlowAfter)
	if r.SlowAfter == 0 && r.StallBegan > 0 {
		at = r.Wall(r.StallBegan)
	}
	var attrs list
	attrs.identity(r)
	attrs.text(semconv.SlownessReasonKey, r.SlowReason)
	attrs.text(semconv.VerdictKey, string(r.Verdict))
	finding := explain.Finding(r)
	attrs.text(semconv.FindingKey, finding)
	attrs.text(semconv.JobNameKey, r.Who.Name)
	attrs.text(semconv.WindowSourceKey, string(r.Source))
	body := name
	if r.HasEpoch { // their name is the same for all
		body = r.Label()
	}
	if r.HasEpoch && r.Who.Name == "" && r.Run != "" {
		body += " of " + r.Run
	}
	if r.Who.Name != "" {
		body += fmt.Sprintf(" of %s %d", r.Who.Name, r.Who.PID)
	}
	if !r.ExceedsLimit() { // otherwise the finding begins with the duration
		body += ", " + explain.Duration(r.Duration().Seconds())
	}
	return Event{
		Name:       semconv.WindowSlowEvent.Name,
		Time:       at,
		Severity:   Warn,
		Body:       UTF8(body + ": " + finding),
		Attributes: attrs,
		Client:     r.Client,
	}
}

// stallSpans returns the children. Each names the disk or mount with the most use, and is a call to it if calls is set,
// so that trace views draw that as another party.
func stallSpans(r *window.Report, calls bool) []Span {
	if len(r.Stalls) == 0 {
		return nil
	}
	name := "storage stall"
	kind := trace.SpanKindUnspecified
	var where list
	at := stalledBy(r)
	if at != "" {
		name += " " + at
	}
	if at != "" && calls {
		kind = trace.SpanKindClient
		where.text(semconv.PeerServiceKey, at)
		where.text(semconv.ServicePeerNameKey, at)
	}
	if at == "" || len(r.Disks) == 0 && r.SlowDevice == nil {
		where.texts(semconv.MountPointsKey, mountPoints(r))
	} else {
		where.text(semconv.SystemDeviceNameKey, at)
	}
	spans := make([]Span, 0, len(r.Stalls))
	for _, stall := range r.Stalls {
		attrs := make([]attribute.KeyValue, 0, 1+len(where))
		attrs = append(attrs, semconv.StallStorageTimeKey.Float64(stall.Waited().Seconds()))
		spans = append(spans, Span{
			Name: UTF8(name), Kind: kind, Start: r.Wall(stall.Start), End: r.Wall(stall.End),
			Attributes: append(attrs, where...),
		})
	}
	return spans
}

// stalledBy returns the disk or mount, or "".
func stalledBy(r *window.Report) string {
	switch {
	case r.SlowDevice != nil:
		return r.SlowDevice.Name
	case r.NoDevice:
		return ""
	case len(r.Disks) > 0:
		return r.Disks[0].Name
	case len(r.Mounts) > 0:
		return r.Mounts[0].Point
	}
	return ""
}

func mountPoints(r *window.Report) []string {
	var list []string
	for _, m := range r.Mounts {
		list = append(list, m.Point)
	}
	return list
}

const traceparent = "traceparent"

// ParseTraceparent parses a W3C traceparent, like the environment variable TRACEPARENT of programs
// ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"). It ignores the additional fields of versions after 00.
func ParseTraceparent(text string) (trace.SpanContext, error) {
	carrier := propagation.MapCarrier{traceparent: strings.TrimSpace(text)}
	found := trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), carrier))
	if !found.IsValid() {
		return trace.SpanContext{}, fmt.Errorf(
			"%.80q is not a traceparent: the form is 00-(32 hex digits)-(16 hex digits)-01", text)
	}
	return found, nil
}

// Traceparent returns the context of a span in the same form, for a child to continue the trace; "" for an invalid one.
func Traceparent(c trace.SpanContext) string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(trace.ContextWithSpanContext(context.Background(), c), carrier)
	return carrier.Get(traceparent)
}

// RootContext returns the context of the root of a new trace: sampled, with random ids.
func RootContext() trace.SpanContext {
	c := trace.SpanContextConfig{SpanID: newSpanID(), TraceFlags: trace.FlagsSampled | trace.FlagsRandom}
	for !c.TraceID.IsValid() {
		_, _ = rand.Read(c.TraceID[:]) // never fails
	}
	return trace.NewSpanContext(c)
}

// SpanContext returns the context of a new child of parent: in its trace, sampled if it is, with its trace state; that
// of a new root if parent is invalid. A span that is not exported must not come between the spans of others, so it gets
// the context of its parent.
func SpanContext(parent trace.SpanContext, exported bool) trace.SpanContext {
	switch {
	case !parent.IsValid():
		return RootContext()
	case !exported:
		return parent
	}
	return parent.WithSpanID(newSpanID()).WithRemote(false)
}

func newSpanID() (id trace.SpanID) {
	for !id.IsValid() {
		_, _ = rand.Read(id[:])
	}
	return id
}
