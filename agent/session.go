package agent

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"

	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/agent/export"
	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/window"
)

// mostReports bounds what a run keeps for its table and its report; the telemetry has them all.
const mostReports = 10_000

// session joins windows with their spans, and keeps the reports of a run. It is safe for concurrent use.
type session struct {
	monitor  *monitor.Monitor
	exporter *export.Exporter
	metrics  *emit.Metrics
	run      string            // the run's name
	job      string            // whose time all windows are of; "" for that of the process which each one names
	parent   trace.SpanContext // of windows that name no other
	keep     int               // reports at most

	gate   sync.RWMutex // held while a window of the API begins
	closed bool

	mu      sync.Mutex
	open    map[string]openWindow // by id
	reports []*window.Report
	skipped int
}

// openWindow is what ends with a window.
type openWindow struct {
	span *export.Open
	job  string // followed for this window; "" where none is
}

// newSession is that of one run, whose windows are all of the same job.
func newSession(m *monitor.Monitor, t *telemetry, run, job string) *session {
	s := newSharedSession(m, t)
	s.run, s.job, s.keep = run, job, mostReports
	return s
}

// newSharedSession is for windows of any process. It keeps no reports: the monitor has the latest.
func newSharedSession(m *monitor.Monitor, t *telemetry) *session {
	s := &session{monitor: m, exporter: t.exporter, metrics: t.metrics, open: map[string]openWindow{}}
	m.OnEnd(s.ended)
	return s
}

// begin opens a window at a moment. parent may be invalid: the session's own is taken then.
func (s *session) begin(w window.Window, at monitor.Moment, parent trace.SpanContext) (string, *export.Open, error) {
	if !parent.IsValid() {
		parent = s.parent
	}
	followed := w.Job
	w.ID, w.Run = monitor.NewID(), s.run
	if s.job != "" {
		w.Job = s.job
	}
	span := s.exporter.Begin(emit.SpanName(&w), at.At.Wall, parent)
	s.mu.Lock()
	s.open[w.ID] = openWindow{span, followed} // before the window can end
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
	w, known := s.open[r.ID]
	delete(s.open, r.ID)
	if !known { // the window that is the whole run
		s.mu.Unlock()
		return
	}
	if len(s.reports) < s.keep {
		s.reports = append(s.reports, r)
	} else {
		s.skipped++
	}
	s.mu.Unlock()
	s.metrics.Durations.Add(r, w.span.Exemplar())
	w.span.End(emit.WindowSpan(r))
	s.leave(w.job)
}

// drop forgets a window that never was.
func (s *session) drop(id string) {
	s.monitor.Drop(id)
	s.mu.Lock()
	w, known := s.open[id]
	delete(s.open, id)
	s.mu.Unlock()
	if known {
		w.span.Drop()
		s.leave(w.job)
	}
}

// endAll closes the windows that are still open when the program exits.
func (s *session) endAll(at monitor.Moment) {
	s.mu.Lock()
	ids := slices.Collect(maps.Keys(s.open))
	s.mu.Unlock()
	for _, id := range ids {
		_, _ = s.end(id, at, true) // ErrUnknown: it ended meanwhile
	}
}

// follow makes the process that a window names the job that it is of. One that cannot be followed has ended already, or
// 64 others are: the window is then of the whole machine.
func (s *session) follow(pid int) (job string) {
	if s.job != "" || pid == 0 {
		return ""
	}
	job = "process " + strconv.Itoa(pid)
	if s.monitor.Follow(job, pid, "", false) != nil {
		return ""
	}
	return job
}

func (s *session) leave(job string) {
	if job != "" {
		s.monitor.Leave(job)
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
	w.Origin, w.Job = window.Announced, s.follow(w.PID)
	id, span, err := s.begin(w, s.monitor.Now(), parent)
	if err != nil {
		return "", "", err
	}
	return id, span.Traceparent(), nil
}

var errOver = errors.New("what watched the windows is ending: no window can begin any more")

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
