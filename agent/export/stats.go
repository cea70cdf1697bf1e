package export

import (
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

	SpanError   error // the last one met with spans, even when all of them arrived in the end
	MetricError error // of the last export of metrics, nil when it arrived: that one counts, counters are cumulative
}

func (e *Exporter) stats() Stats {
	var s Stats
	if e.queue != nil {
		s = e.queue.stats()
	}
	if e.meter != nil {
		s.MetricError = e.meter.err()
	}
	return s
}

// Exports says whether anything leaves at all.
func (e *Exporter) Exports() bool { return e.queue != nil || e.meter != nil }

// Failing is why the backend takes nothing at present, in one line: the error of the last export of metrics or of spans.
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
	return nil
}

// Lost says in one line what did not arrive, why, and what to do; "" when everything did.
func (s Stats) Lost() string {
	total := s.SpansUnsent + s.SpansDropped + s.SpansRefused
	var lost []string
	if total > 0 {
		lost = append(lost, fmt.Sprintf("%d of %d spans (%s)", total, total+s.SpansExported, s.causes()))
	}
	err := s.SpanError
	if s.MetricError != nil {
		lost = append(lost, "the last metrics")
		if total == 0 || err == nil {
			err = s.MetricError
		}
	}
	if len(lost) == 0 {
		return ""
	}
	line := "lost on the way to the OTLP backend: " + strings.Join(lost, " and ")
	if s.SpansRefused == 0 {
		line += "; check that it answers at OTEL_EXPORTER_OTLP_ENDPOINT"
	}
	if err != nil {
		line += ": " + oneLine(err)
	}
	return line
}

// causes says how many spans were lost in which way; without numbers where there is one way only.
func (s Stats) causes() string {
	type cause struct {
		n     uint64
		words string
	}
	var met []cause
	for _, c := range []cause{{s.SpansUnsent, "unsent at the end"}, {s.SpansDropped, "pushed out of a full queue"}, {s.SpansRefused, "refused"}} {
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
