package agent

import (
	"errors"
	"sync"

	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/agent/export"
	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/window"
)

// mostReports bounds what a run keeps for its table and its report; the telemetry has them all.
const mostReports = 10_000

// session joins the windows of one run with their spans, and keeps the reports. It is safe for concurrent use.
type session struct {
	monitor  *monitor.Monitor
	exporter *export.Exporter
	metrics  *emit.Metrics
	run      string // the run's name
	job      string
	parent   trace.SpanContext // of windows that name no other

	gate   sync.RWMutex // held while a window of the API begins
	closed bool

	mu      sync.Mutex
	spans   map[string]*export.Open // of open windows, by id
	reports []*window.Report
	skipped int
}

func newSession(m *monitor.Monitor, t *telemetry, run, job string) *session {
	s := &session{monitor: m, exporter: t.exporter, metrics: t.metrics, run: run, job: job, spans: map[string]*export.Open{}}
	m.OnEnd(s.ended)
	return s
}

// begin opens a window at a moment. parent may be invalid: the session's own is taken then.
func (s *session) begin(w window.Window, at monitor.Moment, parent trace.SpanContext) (string, *export.Open, error) {
	if !parent.IsValid() {
		parent = s.parent
	}
	w.ID, w.Run, w.Job = monitor.NewID(), s.run, s.job
	span := s.exporter.Begin(emit.SpanName(&w), at.At.Wall, parent)
	s.mu.Lock()
	s.spans[w.ID] = span // before the window can end
	s.mu.Unlock()
	id, err := s.monitor.Begin(w, at)
	if err != nil {
		s.drop(w.ID)
		return "", nil, err
	}
	return id, span, nil
}

// end closes a window; unfinished says that it did not end by itself.
func (s *session) end(id string, at monitor.Moment, unfinished bool) (*window.Report, error) {
	if unfinished {
		return s.monitor.Cut(id, at)
	}
	return s.monitor.End(id, at)
}

// ended is told by the monitor of each window that ends, whoever ended it.
func (s *session) ended(r *window.Report) {
	s.mu.Lock()
	span, known := s.spans[r.ID]
	delete(s.spans, r.ID)
	if !known { // the window that is the whole run
		s.mu.Unlock()
		return
	}
	if len(s.reports) < mostReports {
		s.reports = append(s.reports, r)
	} else {
		s.skipped++
	}
	s.mu.Unlock()
	s.metrics.Durations.Add(r, span.Exemplar())
	span.End(emit.WindowSpan(r))
}

// drop forgets a window that never was.
func (s *session) drop(id string) {
	s.monitor.Drop(id)
	s.mu.Lock()
	span := s.spans[id]
	delete(s.spans, id)
	s.mu.Unlock()
	if span != nil {
		span.Drop()
	}
}

// endAll closes the windows that are still open when the program exits.
func (s *session) endAll(at monitor.Moment) {
	s.mu.Lock()
	ids := make([]string, 0, len(s.spans))
	for id := range s.spans {
		ids = append(ids, id)
	}
	s.mu.Unlock()
	for _, id := range ids {
		_, _ = s.end(id, at, true) // ErrUnknown: it ended meanwhile
	}
}

// Begin opens a window for the API.
func (s *session) Begin(w window.Window, traceparent string) (id, own string, err error) {
	var parent trace.SpanContext
	if traceparent != "" {
		if parent, err = export.ParseTraceparent(traceparent); err != nil {
			return "", "", err
		}
	}
	s.gate.RLock()
	defer s.gate.RUnlock()
	if s.closed {
		return "", "", errOver
	}
	w.Origin = window.Announced
	id, span, err := s.begin(w, s.monitor.Now(), parent)
	if err != nil {
		return "", "", err
	}
	return id, span.Traceparent(), nil
}

var errOver = errors.New("the program that was run has exited: no window can begin any more")

// close refuses windows that begin through the API from now on. Those that have begun may end.
func (s *session) close() {
	s.gate.Lock()
	defer s.gate.Unlock()
	s.closed = true
}

// End closes a window for the API.
func (s *session) End(id string) (*window.Report, error) { return s.end(id, s.monitor.Now(), false) }

// timeline is the reports in the order in which their windows began.
func (s *session) timeline() []*window.Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	sorted := append([]*window.Report{}, s.reports...)
	sortReports(sorted)
	return sorted
}

// left is how many reports were not kept.
func (s *session) left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.skipped
}
