package session

import (
	"errors"

	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/internal/window"
)

// errOver is told to who announces a window too late.
var errOver = errors.New("what watched the windows is ending: no window can begin any more")

// Begin opens a window for the API: see api.Windows.
func (s *Session) Begin(w window.Window, traceparent string) (id, own string, err error) {
	var parent trace.SpanContext
	if traceparent != "" {
		if parent, err = ParseTraceparent(traceparent); err != nil {
			return "", "", err
		}
	}
	s.gate.RLock()
	defer s.gate.RUnlock()
	if s.closed {
		return "", "", errOver
	}
	w.Source, w.Job = window.Announced, s.follow(w.PID)
	id, span, err := s.BeginAt(w, s.monitor.Now(), parent)
	if err != nil {
		return "", "", err
	}
	return id, Traceparent(span.SpanContext()), nil
}

// End closes a window for the API: see api.Windows.
func (s *Session) End(id string, failed bool) (*window.Report, error) {
	return s.EndAt(id, s.monitor.Now(), failed)
}

// Close refuses windows that begin through the API from now on. Those that have begun may end.
func (s *Session) Close() {
	s.gate.Lock()
	defer s.gate.Unlock()
	s.closed = true
}

// follow makes the process that a window names the job that it is of. One that cannot be followed has ended already, or
// 64 others are: the window is then of the whole machine.
func (s *Session) follow(pid int) (job string) {
	if s.options.Job != "" || pid == 0 {
		return ""
	}
	job = s.monitor.JobOf(pid)
	if job == "" || s.monitor.Follow(job, pid, "", false) != nil {
		return ""
	}
	return job
}

func (s *Session) leave(job string) {
	if job != "" {
		s.monitor.Leave(job)
	}
}
