package export

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/stallspan/stallspan/internal/emit/queue"
)

// Stats is what became of everything that an Exporter was given.
type Stats struct {
	SpansExported uint64 // accepted by the backend
	SpansDropped  uint64 // replaced by newer ones in a full queue
	SpansRefused  uint64 // rejected by the backend
	SpansUnsent   uint64 // still queued when Close's ctx ended; those of an interrupted export may have arrived

	LogsExported uint64 // the same for log records
	LogsDropped  uint64
	LogsRefused  uint64
	LogsUnsent   uint64

	SpanError   error // the last error of spans, even if all of them arrived in the end
	LogError    error // the same for log records
	MetricError error // of the last export of metrics; nil if it arrived
}

func (e *Exporter) stats() Stats {
	spans, records := e.counts()
	return Stats{
		SpansExported: spans.Sent, SpansDropped: spans.Dropped, SpansRefused: spans.Refused, SpansUnsent: spans.Waiting,
		LogsExported: records.Sent, LogsDropped: records.Dropped, LogsRefused: records.Refused, LogsUnsent: records.Waiting,
		SpanError: spans.LastError, LogError: records.LastError, MetricError: e.lastExport.get(),
	}
}

func (e *Exporter) counts() (spans, records queue.Counts) {
	if e.spans != nil {
		spans = e.spans.queue.Counts()
	}
	if e.records != nil {
		records = e.records.queue.Counts()
	}
	return spans, records
}

// Exports reports whether any signal is exported.
func (e *Exporter) Exports() bool { return e.spans != nil || e.meters != nil || e.records != nil }

// Failing returns the error of the newest export of metrics, spans or log records, in one line; nil while all is well.
func (e *Exporter) Failing() error {
	spans, records := e.counts()
	var refusal *queue.Refusal
	if errors.As(records.Failing, &refusal) { // as by a backend without log records
		records.Failing = nil
	}
	if err := cmp.Or(e.lastExport.get(), spans.Failing, records.Failing); err != nil {
		return errors.New(oneLine(err))
	}
	return nil
}

// Dropped returns how many spans and log records newer ones replaced in full queues.
func (e *Exporter) Dropped() uint64 {
	spans, records := e.counts()
	return spans.Dropped + records.Dropped
}

// Lost returns how many spans and log records newer ones replaced in a full queue, or the backend refused. A
// nil Exporter has lost none.
func (e *Exporter) Lost() uint64 {
	if e == nil {
		return 0
	}
	spans, records := e.counts()
	return spans.Dropped + spans.Refused + records.Dropped + records.Refused
}

// LogsDropped returns how many log records newer ones replaced in a full queue, or the backend refused.
func (e *Exporter) LogsDropped() uint64 {
	_, records := e.counts()
	return records.Dropped + records.Refused
}

// Lost returns one line with what did not arrive, why, and what to do; "" if everything arrived.
func (s Stats) Lost() string {
	spans := losses{s.SpansExported, s.SpansUnsent, s.SpansDropped, s.SpansRefused}
	records := losses{s.LogsExported, s.LogsUnsent, s.LogsDropped, s.LogsRefused}
	var lost []string
	var err error
	if spans.total() > 0 {
		lost = append(lost, spans.text("spans"))
		err = s.SpanError
	}
	if records.total() > 0 {
		lost = append(lost, records.text("log records"))
		err = cmp.Or(err, s.LogError)
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
	case s.SpansRefused == 0 && s.LogsRefused == 0:
		line += "; check that it answers at OTEL_EXPORTER_OTLP_ENDPOINT"
	case s.LogsRefused > 0 && s.LogsExported == 0:
		line += "; set OTEL_LOGS_EXPORTER=none where it takes no log records"
	}
	if err != nil {
		line += ": " + oneLine(err)
	}
	return line
}

// losses is what became of one signal.
type losses struct{ exported, unsent, dropped, refused uint64 }

func (l losses) total() uint64 { return l.unsent + l.dropped + l.refused }

func (l losses) text(what string) string {
	return fmt.Sprintf("%d of %d %s (%s)", l.total(), l.total()+l.exported, what, l.causes())
}

// causes lists the causes with their numbers; a single cause has none.
func (l losses) causes() string {
	var causes []string
	only := ""
	for _, c := range []struct {
		n    uint64
		text string
	}{{l.unsent, "unsent at the end"}, {l.dropped, "dropped from a full queue"}, {l.refused, "refused"}} {
		if c.n > 0 {
			causes, only = append(causes, fmt.Sprintf("%d %s", c.n, c.text)), c.text
		}
	}
	if len(causes) == 1 {
		return only
	}
	return strings.Join(causes, ", ")
}

// maxErrorBytes bounds the text of an error: a backend may answer with a page of HTML.
const maxErrorBytes = 300

// oneLine returns the text of an error in one line without passwords: gRPC repeats an endpoint that it cannot use.
func oneLine(err error) string {
	text := withoutUser(strings.Join(strings.Fields(strings.ToValidUTF8(err.Error(), "?")), " "))
	const prefix = "desc = " // gRPC puts the cause behind it
	if i := strings.LastIndex(text, prefix); i >= 0 && strings.Contains(text, "rpc error: ") {
		text = strings.Trim(text[i+len(prefix):], `"`)
	}
	if len(text) > maxErrorBytes {
		text = strings.ToValidUTF8(text[:maxErrorBytes], "") + "..."
	}
	return text
}
