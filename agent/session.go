package agent

import (
	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/session"
)

// maxReports bounds the windows in the table and the report of a run. The telemetry has them all.
const maxReports = 10_000

// newSession holds the windows of one run. They all belong to the same job, and their spans are children of parent.
func newSession(m *monitor.Monitor, t *telemetry, run, job string, parent trace.SpanContext) *session.Session {
	return session.New(m, session.Options{
		Spans: t.begin, Durations: &t.metrics.Durations, Run: run, Job: job, Parent: parent, Keep: maxReports,
	})
}
