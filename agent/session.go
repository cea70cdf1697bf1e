package agent

import (
	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/session"
)

// mostReports bounds what a run keeps for its table and its report; the telemetry has them all.
const mostReports = 10_000

// newSession is that of one run, whose windows are all of the same job, with their spans below parent.
func newSession(m *monitor.Monitor, t *telemetry, run, job string, parent trace.SpanContext) *session.Session {
	return session.New(m, session.Options{
		Spans: t.begin, Durations: &t.metrics.Durations, Run: run, Job: job, Parent: parent, Keep: mostReports,
	})
}
