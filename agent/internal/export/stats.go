package export

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/stallspan/stallspan/internal/emit/queue"
)

// Stats is what became of everything that an Exporter was given. What still waits was queued when Close's ctx ended;
// that of an interrupted export may have arrived.
type Stats struct {
	Spans, Logs queue.Counts
	MetricError error // of the last export of metrics; nil if it arrived
}

func (e *Exporter) stats() (s Stats) {
	s.MetricError = e.metricError()
	if e.spans != nil {
		s.Spans = e.spans.queue.Counts()
	}
	if e.records != nil {
		s.Logs = e.records.queue.Counts()
	}
	return s
}

// metricError is the error of the newest export of metrics; nil after a success.
func (e *Exporter) metricError() error {
	if err := e.lastExport.Load(); err != nil {
		return *err
	}
	return nil
}

// Exports reports whether any signal is exported.
func (e *Exporter) Exports() bool { return e.spans != nil || e.meters != nil || e.records != nil }

// Failing returns the error of the newest export of metrics, spans or log records, in one line; nil while all is well.
func (e *Exporter) Failing() error {
	s := e.stats()
	var refusal *queue.Refusal
	if errors.As(s.Logs.Failing, &refusal) { // as by a backend without log records
		s.Logs.Failing = nil
	}
	if err := cmp.Or(s.MetricError, s.Spans.Failing, s.Logs.Failing); err != nil {
		return errors.New(oneLine(err))
	}
	return nil
}

// Dropped returns how many spans and log records newer ones replaced in full queues.
func (e *Exporter) Dropped() uint64 {
	s := e.stats()
	return s.Spans.Dropped + s.Logs.Dropped
}

// Lost returns how many spans and log records newer ones replaced in a full queue, or the backend refused. A
// nil Exporter has lost none.
func (e *Exporter) Lost() uint64 {
	if e == nil {
		return 0
	}
	s := e.stats()
	return s.Spans.Dropped + s.Spans.Refused + s.Logs.Dropped + s.Logs.Refused
}

// LogsDropped returns how many log records newer ones replaced in a full queue, or the backend refused.
func (e *Exporter) LogsDropped() uint64 {
	s := e.stats()
	return s.Logs.Dropped + s.Logs.Refused
}

// Lost returns one line with what did not arrive, why, and what to do; "" if everything arrived.
func (s Stats) Lost() string {
	var lost []string
	var err error
	for _, one := range []struct {
		queue.Counts
		what string
	}{{s.Spans, "spans"}, {s.Logs, "log records"}} {
		if n := one.Waiting + one.Dropped + one.Refused; n > 0 {
			lost = append(lost, fmt.Sprintf("%d of %d %s (%s)", n, n+one.Sent, one.what, causes(&one.Counts)))
			err = cmp.Or(err, one.LastError)
		}
	}
	if s.MetricError != nil {
		lost = append(lost, "the last metrics")
		err = cmp.Or(err, s.MetricError)
	}
	if len(lost) == 0 {
		return ""
	}
	line := "lost on the way to the OTLP backend: " + strings.Join(lost, " and ")
	switch {
	case s.Spans.Refused == 0 && s.Logs.Refused == 0:
		line += "; check that it answers at OTEL_EXPORTER_OTLP_ENDPOINT"
	case s.Logs.Refused > 0 && s.Logs.Sent == 0:
		line += "; set OTEL_LOGS_EXPORTER=none where it takes no log records"
	}
	if err != nil {
		line += ": " + oneLine(err)
	}
	return line
}

// causes lists why items are lost, with their numbers; a single cause has none.
func causes(c *queue.Counts) string {
	var causes []string
	only := ""
	for _, cause := range []struct {
		n    uint64
		text string
	}{{c.Waiting, "unsent at the end"}, {c.Dropped, "dropped from a full queue"}, {c.Refused, "refused"}} {
		if cause.n > 0 {
			causes, only = append(causes, fmt.Sprintf("%d %s", cause.n, cause.text)), cause.text
		}
	}
	if len(causes) == 1 {
		return only
	}
	return strings.Join(causes, ", ")
}

// maxErrorBytes bounds the text of an error: a backend may answer with a page of HTML.
const maxErrorBytes = 300

// refused matches the error of a connection that was refused, which gRPC and HTTP put into words of their own.
var refused = regexp.MustCompile(`dial (?:tcp|unix) (\S+): connect: connection refused`)

// oneLine returns the text of an error in one line without passwords: gRPC repeats an endpoint that it cannot use.
func oneLine(err error) string {
	text := withoutUser(strings.Join(strings.Fields(strings.ToValidUTF8(err.Error(), "?")), " "))
	const prefix = "desc = " // gRPC puts the cause behind it
	if i := strings.LastIndex(text, prefix); i >= 0 && strings.Contains(text, "rpc error: ") {
		text = strings.Trim(text[i+len(prefix):], `"`)
	}
	if m := refused.FindStringSubmatch(text); m != nil {
		return "nothing listens at " + m[1]
	}
	if len(text) > maxErrorBytes {
		text = strings.ToValidUTF8(text[:maxErrorBytes], "") + "..."
	}
	return text
}
