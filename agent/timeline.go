package agent

import (
	"slices"
	"sync"

	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/internal/windows"
)

// maxReports bounds the windows in a table and a report. The telemetry has them all.
const maxReports = 10_000

// timeline keeps the reports of the first windows that ended, for a table and a report file. The zero value is ready.
type timeline struct {
	mu      sync.Mutex
	reports []*window.Report
	dropped int

	added func(*window.Report) // called with each report; nil for nothing
}

func (t *timeline) add(r *window.Report) {
	if t.added != nil {
		t.added(r)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.reports) < maxReports {
		t.reports = append(t.reports, r)
	} else {
		t.dropped++
	}
}

// sorted returns the reports in the order in which their windows began, and the number of those that were dropped.
func (t *timeline) sorted() (reports []*window.Report, dropped int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	reports = append([]*window.Report{}, t.reports...) // not nil: an empty list in JSON
	slices.SortStableFunc(reports, windows.ByStart)
	return reports, t.dropped
}

// newClient returns the client of one run, with all windows of the same job, their spans below parent, and their
// reports in the timeline.
func newClient(m *monitor.Monitor, t *telemetry, to *timeline, run, job string,
	parent trace.SpanContext) *windows.Client {
	return m.Windows.NewClient(windows.Options{
		Spans: t.begin, Show: t.show, Durations: t.metrics.Durations, Run: run, Job: job, Parent: parent,
		Reports: to.add,
	})
}
