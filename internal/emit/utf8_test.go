package emit

import (
	"testing"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"

	"github.com/stallspan/stallspan/internal/config"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
)

// Invalid text of programs and file systems becomes valid in spans, with children and events.
func TestWindowSpanIsUTF8(t *testing.T) {
	const invalid = "Latin-1 \xe4"
	r := &window.Report{
		Window: window.Window{
			Kind: window.ModelLoad, Model: invalid, Run: invalid, Name: invalid, Path: invalid,
			Attributes: map[string]string{invalid: invalid},
		},
		Facts:     window.Facts{GPUIDs: []string{invalid}, Disks: []window.DiskUse{{Name: invalid}}},
		Judgement: window.Judgement{Slow: true, SlowReason: invalid, Missing: []window.Missing{{Reason: window.UnknownGPU, Device: invalid}}},
		Further:   window.Further{Findings: []window.Finding{window.FailingDisk{Text: invalid, Remedy: invalid}}, Stalls: []window.Stall{{End: time.Second}}},
		Storms:    []window.Storm{{Disk: invalid}},
		Who:       sample.JobName{ID: invalid, Name: invalid, Attributes: []sample.Attribute{{Key: invalid, Value: invalid}}},
	}
	checkUTF8(t, WindowSpan(r, config.Spans{}))
}

func checkUTF8(t *testing.T, s Span) {
	t.Helper()
	attributes := s.Attributes
	if s.Job != nil {
		attributes = append(attributes, s.Job.Attributes...)
	}
	for _, e := range s.Events {
		attributes = append(attributes, e.Attributes...)
		attributes = append(attributes, attribute.String("name and body", e.Name+e.Body))
	}
	for _, kv := range append(attributes, attribute.String("name", s.Name)) {
		if text := string(kv.Key) + kv.Value.String(); !utf8.ValidString(text) {
			t.Errorf("span %q: got the text %q, want valid UTF-8", s.Name, text)
		}
	}
	for _, child := range s.Children {
		checkUTF8(t, child)
	}
}
