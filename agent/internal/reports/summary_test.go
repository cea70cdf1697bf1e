package reports

import (
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/agent/internal/output"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
)

func TestSummary(t *testing.T) {
	t.Parallel()
	report := func(kind window.Kind, start, end time.Duration, slow bool) *window.Report {
		return &window.Report{Window: window.Window{Kind: kind, Start: sample.Stamp{Mono: start},
			End: sample.Stamp{Mono: end}}, Judgement: window.Judgement{Slow: slow}}
	}
	s := NewSummary(report(window.Custom, 1*time.Second, 60*time.Second, false), []*window.Report{
		report(window.ModelLoad, 2*time.Second, 5*time.Second, false),
		report(window.Epoch, 10*time.Second, 20*time.Second, false),
		report(window.Epoch, 22*time.Second, 52*time.Second, true),
		report(window.Epoch, 53*time.Second, 55*time.Second, false),
	})
	var text strings.Builder
	s.Write(&output.Table{Out: &text})
	got := strings.Join(strings.Fields(text.String()), " ")
	for _, want := range []string{
		"Run: 59.0 s, 9.0 s before the first epoch, 3.0 s between epochs, 5.0 s after the last.",
		"Epochs: 3, median 10.0 s, p95 30.0 s, longest 30.0 s; 1 slow.",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("got %q, want %q in it", got, want)
		}
	}
}

// The median of an even number of epochs is between two. Two epochs have no line, because the table shows both.
func TestMedianOfTheSummary(t *testing.T) {
	t.Parallel()
	for want, lengths := range map[string][]float64{ // in seconds
		"":                                      {1, 100},
		"3, median 2.0 s, p95 9.0 s":            {1, 9, 2},
		"4, median 3.0 s, p95 9.0 s, longest 9": {1, 9, 2, 4},
	} {
		var epochs []*window.Report
		for _, length := range lengths {
			epochs = append(epochs, &window.Report{Window: window.Window{Kind: window.Epoch,
				End: sample.Stamp{Mono: time.Duration(length * 1e9)}}})
		}
		var text strings.Builder
		NewSummary(nil, epochs).Write(&output.Table{Out: &text})
		if got := text.String(); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%v: got %q, want %q", lengths, got, want)
		}
	}
}

// TestSlowRowsStay: a long table leaves out rows, but none of a slow window.
func TestSlowRowsStay(t *testing.T) {
	t.Parallel()
	var reports []*window.Report
	for n := range 100 {
		reports = append(reports, &window.Report{Window: window.Window{Kind: window.Epoch, Epoch: n, HasEpoch: true}, Judgement: window.Judgement{Slow: n == 50}})
	}
	var text strings.Builder
	PrintTable(&text, reports, nil)
	got := text.String()
	if !strings.Contains(got, "epoch 50 ") || strings.Contains(got, "epoch 49 ") {
		t.Errorf("got %s, want epoch 50, which is slow, and not epoch 49", got)
	}
	if !strings.Contains(got, "... 30 more") || !strings.Contains(got, "... 29 more") {
		t.Errorf("got %s, want 30 and 29 rows left out", got)
	}
}
