package telemetry

import (
	"sync"

	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/internal/windows"
)

// MaxReports bounds the windows in a table and a report. The telemetry has them all.
const MaxReports = 10_000

// Timeline keeps the reports of the first windows that ended, for a table and a report file. The zero value is ready.
type Timeline struct {
	mu      sync.Mutex
	reports []*window.Report
	dropped int

	Added func(*window.Report) // called with each report; nil for nothing
}

// Add keeps a report, while there is room.
func (t *Timeline) Add(r *window.Report) {
	if t.Added != nil {
		t.Added(r)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.reports) < MaxReports {
		t.reports = append(t.reports, r)
	} else {
		t.dropped++
	}
}

// Sorted returns the reports in the order in which their windows began, and the number of those that were dropped.
func (t *Timeline) Sorted() (reports []*window.Report, dropped int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	reports = append([]*window.Report{}, t.reports...) // not nil: an empty list in JSON
	explain.InOrder(reports, func(r *window.Report) explain.Place {
		return explain.Place{ID: r.ID, Within: r.Within, Start: r.Start.Mono, Length: r.Duration()}
	})
	return reports, t.dropped
}

// NewClient returns the client of one run, with all windows of the same job, their spans below parent, and their
// reports in the timeline.
func NewClient(m *monitor.Monitor, t *Telemetry, to *Timeline, run, job string,
	parent trace.SpanContext) *windows.Client {
	return m.Windows.NewClient(windows.Options{
		Spans: t.Begin, Show: t.show, Durations: t.Metrics.Durations, Run: run, Job: job, Parent: parent,
		Reports: to.Add,
	})
}
