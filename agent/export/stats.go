package export

import (
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

// Lost says in one line what did not arrive and why; "" when everything did.
func (s Stats) Lost() string {
	var parts []string
	part := func(n uint64, what string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, what))
		}
	}
	part(s.SpansUnsent, "unsent at the end")
	part(s.SpansDropped, "dropped by a full queue")
	part(s.SpansRefused, "refused by the backend")
	var lost []string
	total := s.SpansUnsent + s.SpansDropped + s.SpansRefused
	if total > 0 {
		lost = append(lost, fmt.Sprintf("%d of %d spans (%s)", total, total+s.SpansExported, strings.Join(parts, ", ")))
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
	line := strings.Join(lost, " and ") + " did not reach the OTLP endpoint"
	if err != nil {
		line += ": " + oneLine(err)
	}
	return line
}

// longestError bounds an error's text in bytes: a backend may answer with a page of HTML.
const longestError = 300

func oneLine(err error) string {
	text := strings.Join(strings.Fields(strings.ToValidUTF8(err.Error(), "?")), " ")
	if len(text) > longestError {
		text = strings.ToValidUTF8(text[:longestError], "") + "..."
	}
	return text
}
