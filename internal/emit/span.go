// Package emit turns what was measured into telemetry, once for every door: readings into metricdata, reports into
// spans of plain attributes. It knows neither the SDK's pipelines nor the Collector's pdata.
package emit

import (
	"fmt"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/semconv"
)

// Span is a finished span without its place in a trace. Its kind is internal and its status stays unset: slow is not
// an error.
type Span struct {
	Name       string
	Start, End time.Time
	Attributes []attribute.KeyValue
	Events     []Event
	Children   []Span
}

// Event is something that happened at one moment of a span.
type Event struct {
	Name       string
	Time       time.Time
	Severity   Severity // of its log record, as is Body: an event on a span has neither
	Was        Severity // of one that is over: as it began
	Body       string
	Attributes []attribute.KeyValue
	ID         string            // unique; set by Identified
	Span       trace.SpanContext // the span that it happened in, or invalid; set by Identified
}

// Severity says whether somebody should look at an event.
type Severity int

const (
	Info  Severity = iota
	Warn           // somebody should look
	Error          // somebody has to act
)

// String is how log records put it.
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

// SpanName is how a window's span is called. It is known when the window begins.
func SpanName(w *window.Window) string {
	switch {
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

// WindowSpan is the span of a window that ended, with a child for each stretch in which it waited for storage.
func WindowSpan(r *window.Report) Span {
	s := Span{
		Name:       SpanName(&r.Window),
		Start:      r.Start.Wall,
		End:        r.Start.Wall.Add(r.Duration()),
		Attributes: Attributes(r),
	}
	if r.Slow {
		s.Events = []Event{slow(r)}
	}
	for i := range r.Storms {
		s.Events = append(s.Events, storm(r, &r.Storms[i]))
	}
	s.Children = stallSpans(r)
	return s
}

// slow is the event of a slow window, at the moment when it began to wait.
func slow(r *window.Report) Event {
	at := r.Start.Wall
	if r.StallBegan > 0 {
		at = r.Wall(r.StallBegan)
	}
	var attrs list
	attrs.what(r)
	attrs.text(semconv.SlownessReasonKey, r.SlowReason)
	attrs.text(semconv.VerdictKey, string(r.Verdict))
	attrs.text(semconv.FindingKey, r.Finding)
	body := SpanName(&r.Window)
	if !r.LastedTooLong() { // else the finding begins with how long it took
		body += ", " + window.Short(r.Duration().Seconds())
	}
	return Event{
		Name:       semconv.WindowSlowEvent.Name,
		Time:       at,
		Severity:   Warn,
		Body:       utf8(body + ": " + r.Finding),
		Attributes: attrs,
	}
}

// stallSpans are the children, named for the disk or mount that was used most.
func stallSpans(r *window.Report) []Span {
	if len(r.Stalls) == 0 {
		return nil
	}
	name := "storage stall"
	var where []attribute.KeyValue
	switch {
	case len(r.Disks) > 0:
		name += " " + r.Disks[0].Name
		where = append(where, semconv.SystemDeviceNameKey.String(r.Disks[0].Name))
	case len(r.Mounts) > 0:
		name += " " + r.Mounts[0].Point
		where = append(where, semconv.MountPointsKey.StringSlice(points(r)))
	}
	spans := make([]Span, 0, len(r.Stalls))
	for _, stall := range r.Stalls {
		attrs := make([]attribute.KeyValue, 0, 1+len(where))
		attrs = append(attrs, semconv.StallStorageTimeKey.Float64(stall.Waited.Seconds()))
		spans = append(spans, Span{
			Name: name, Start: r.Wall(stall.Start), End: r.Wall(stall.End), Attributes: append(attrs, where...),
		})
	}
	return spans
}

func points(r *window.Report) []string {
	var list []string
	for _, m := range r.Mounts {
		list = append(list, m.Point)
	}
	return list
}
