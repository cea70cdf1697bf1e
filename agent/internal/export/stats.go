package export

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
)

// Stats is what became of everything that an Exporter was given.
type Stats struct {
	SpansExported uint64 // taken by the backend
	SpansDropped  uint64 // pushed out by newer ones while the backend took none
	SpansRefused  uint64 // sent, and unwanted there
	SpansUnsent   uint64 // still queued when Close's ctx ended; those of an export that was cut off may have arrived

	LogsExported uint64 // the same of log records
	LogsDropped  uint64
	LogsRefused  uint64
	LogsUnsent   uint64

	SpanError   error // the last one met with spans, even when all of them arrived in the end
	LogError    error // the same with log records
	MetricError error // of the last export of metrics, nil when it arrived: that one counts, counters are cumulative
}

func (e *Exporter) stats() Stats {
	var s Stats
	if e.queue != nil {
		s = e.queue.stats()
	}
	if e.records != nil {
		c := e.records.counts()
		s.LogsExported, s.LogsDropped, s.LogsRefused, s.LogsUnsent, s.LogError = c.exported, c.dropped, c.refused, c.unsent, c.err
	}
	if e.meter != nil {
		s.MetricError = e.meter.err()
	}
	return s
}

// Exports says whether anything leaves at all.
func (e *Exporter) Exports() bool { return e.queue != nil || e.meter != nil || e.records != nil }

// Failing is why the backend takes nothing at present, in one line: the error of the last export of metrics, spans or log
// records.
// It is nil while all is well.
func (e *Exporter) Failing() error {
	if e.meter != nil {
		if err := e.meter.err(); err != nil {
			return errors.New(oneLine(err))
		}
	}
	if e.queue != nil {
		if err := e.queue.failing(); err != nil {
			return errors.New(oneLine(err))
		}
	}
	if e.records != nil {
		var refused *refusal // as by a backend that takes no log records at all
		if err := e.records.failing(); err != nil && !errors.As(err, &refused) {
			return errors.New(oneLine(err))
		}
	}
	return nil
}

// Lost says in one line what did not arrive, why, and what to do; "" when everything did.
func (s Stats) Lost() string {
	spans := losses{s.SpansExported, s.SpansUnsent, s.SpansDropped, s.SpansRefused}
	records := losses{s.LogsExported, s.LogsUnsent, s.LogsDropped, s.LogsRefused}
	var lost []string
	var err error
	if spans.total() > 0 {
		lost = append(lost, spans.words("spans"))
		err = s.SpanError
	}
	if records.total() > 0 {
		lost = append(lost, records.words("log records"))
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

func (l losses) words(what string) string {
	return fmt.Sprintf("%d of %d %s (%s)", l.total(), l.total()+l.exported, what, l.causes())
}

// causes says how many were lost in which way; without numbers where there is one way only.
func (l losses) causes() string {
	type cause struct {
		n     uint64
		words string
	}
	var met []cause
	for _, c := range []cause{{l.unsent, "unsent at the end"}, {l.dropped, "pushed out of a full queue"}, {l.refused, "refused"}} {
		if c.n > 0 {
			met = append(met, c)
		}
	}
	if len(met) == 1 {
		return met[0].words
	}
	words := make([]string, len(met))
	for i, c := range met {
		words[i] = fmt.Sprintf("%d %s", c.n, c.words)
	}
	return strings.Join(words, ", ")
}

// longestError bounds an error's text in bytes: a backend may answer with a page of HTML.
const longestError = 300

func oneLine(err error) string {
	text := strings.Join(strings.Fields(strings.ToValidUTF8(err.Error(), "?")), " ")
	const around = "desc = " // gRPC nests its own words around the cause
	if i := strings.LastIndex(text, around); i >= 0 && strings.Contains(text, "rpc error: ") {
		text = strings.Trim(text[i+len(around):], `"`)
	}
	if len(text) > longestError {
		text = strings.ToValidUTF8(text[:longestError], "") + "..."
	}
	return text
}
