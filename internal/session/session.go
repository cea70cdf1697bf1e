// Package session joins windows with their spans. It is what all doors have in common: a window that begins starts a
// span, and a window that ends, whoever ended it, gives its report to the span, to the histograms of durations, and to
// those who keep reports. A door says how spans are started.
package session

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/window"
)

// Spans starts a span, as a child of parent where that is valid and as the root of a new trace otherwise. It is called
// by many goroutines at once.
type Spans func(name string, start time.Time, parent trace.SpanContext) Span

// Span is a span that has begun. Its methods are called by many goroutines at once, and End or Drop once.
type Span interface {
	// End gives the span everything that is known of its window, with its children, and lets it leave. It must not
	// wait for whoever takes it: the goroutine may be the one that samples.
	End(emit.Span)
	// Drop forgets the span: what it stood for never happened.
	Drop()
	// SpanContext is the place in the trace: the parent of other spans.
	SpanContext() trace.SpanContext
	// Exemplar is the context of a span that leaves, and invalid for any other: a metric should not point to a span
	// that no backend has.
	Exemplar() trace.SpanContext
}

// Options are what one door's session differs in from another's.
type Options struct {
	Spans     Spans
	Durations *emit.Durations   // of the door's metrics
	Run       string            // the name of the run that all windows are of; "" for the one that each names
	Job       string            // whose time all windows are of; "" for that of the process which each one names
	Parent    trace.SpanContext // of windows that name no other
	Keep      int               // reports at most; the monitor has the latest in any case
}

// Session is the windows of one door. It is safe for concurrent use.
type Session struct {
	monitor *monitor.Monitor
	options Options

	forget func() // the monitor, which is to tell no more

	gate   sync.RWMutex // held while a window of the API begins
	closed bool

	mu      sync.Mutex
	open    map[string]openWindow // by id
	reports []*window.Report
	skipped int
}

// openWindow is what ends with a window.
type openWindow struct {
	span Span
	job  string // followed for this window; "" where none is
}

// New makes a session of windows of m.
func New(m *monitor.Monitor, o Options) *Session {
	s := &Session{monitor: m, options: o, open: map[string]openWindow{}}
	s.forget = m.OnEnd(s.ended)
	return s
}

// BeginAt opens a window at a moment. parent may be invalid: the session's own is taken then.
func (s *Session) BeginAt(w window.Window, at monitor.Moment, parent trace.SpanContext) (id string, own Span, err error) {
	if !parent.IsValid() {
		parent = s.options.Parent
	}
	followed := w.Job
	w.ID = monitor.NewID()
	if s.options.Run != "" {
		w.Run = s.options.Run
	}
	if s.options.Job != "" {
		w.Job = s.options.Job
	}
	own = s.options.Spans(emit.SpanName(&w), at.At.Wall, parent)
	s.mu.Lock()
	s.open[w.ID] = openWindow{own, followed} // before the window can end
	s.mu.Unlock()
	id, err = s.monitor.Begin(w, at)
	if err != nil {
		s.Drop(w.ID)
		return "", nil, err
	}
	return id, own, nil
}

// EndAt closes a window at a moment; unfinished says that it did not end by itself. The error is window.ErrUnknown for
// one that is not open.
func (s *Session) EndAt(id string, at monitor.Moment, unfinished bool) (*window.Report, error) {
	if unfinished {
		return s.monitor.Cut(id, at)
	}
	return s.monitor.End(id, at)
}

// Loosen says of an open window that it holds more than what it is about: see window.Window.
func (s *Session) Loosen(id string) { s.monitor.Loosen(id) }

// ended is told by the monitor of each window that ends, whoever ended it.
func (s *Session) ended(r *window.Report) {
	s.mu.Lock()
	w, known := s.open[r.ID]
	delete(s.open, r.ID)
	if !known { // another session's, or the window that is the whole run
		s.mu.Unlock()
		return
	}
	if len(s.reports) < s.options.Keep {
		s.reports = append(s.reports, r)
	} else {
		s.skipped++
	}
	s.mu.Unlock()
	s.options.Durations.Add(r, w.span.Exemplar())
	w.span.End(emit.WindowSpan(r))
	s.leave(w.job)
}

// Drop forgets a window that never was.
func (s *Session) Drop(id string) {
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

// Now takes the reading for the edge of a window.
func (s *Session) Now() monitor.Moment { return s.monitor.Now() }

// There says whether a name is the absolute path of a file or folder of this machine.
func (s *Session) There(name string) bool { return s.monitor.There(name) }

// EndAll closes the windows that are still open when the door closes, and tells of no more.
func (s *Session) EndAll(at monitor.Moment) {
	s.mu.Lock()
	ids := slices.Collect(maps.Keys(s.open))
	s.mu.Unlock()
	for _, id := range ids {
		_, _ = s.EndAt(id, at, true) // ErrUnknown: it ended meanwhile
	}
	s.forget()
}

// Open is how many of the session's windows are open.
func (s *Session) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

// Timeline is the reports that are kept, in the order in which their windows began.
func (s *Session) Timeline() []*window.Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	sorted := append([]*window.Report{}, s.reports...)
	Sort(sorted)
	return sorted
}

// Left is how many reports were not kept.
func (s *Session) Left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.skipped
}

// Sort puts reports in the order in which their windows began; of two that began together the longer comes first.
func Sort(reports []*window.Report) {
	slices.SortStableFunc(reports, func(a, b *window.Report) int {
		return cmp.Or(cmp.Compare(a.Start.Mono, b.Start.Mono), cmp.Compare(b.End.Mono, a.End.Mono))
	})
}
