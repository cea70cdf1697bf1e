package api

import (
	"bufio"
	"net/http"
	"time"

	"github.com/stallspan/stallspan/internal/window"
)

// enter waits for a turn to make many reports, which takes time and memory, and gives what ends the turn. It does not
// watch the request's context: that ends when a client closes its sending half, and such a client still reads.
func (s *Server) enter() (leave func(), err error) {
	patience := time.NewTimer(readTimeout)
	defer patience.Stop()
	select {
	case s.listings <- struct{}{}:
		return func() { <-s.listings }, nil
	case <-patience.C:
		return nil, refuse(http.StatusServiceUnavailable, "too many others ask for reports at this moment: try again in a few seconds")
	}
}

// list writes report after report, so that the text of thousands never lies in memory at once.
func (s *Server) list(w http.ResponseWriter, _ *http.Request) error {
	leave, err := s.enter()
	if err != nil {
		return err
	}
	defer leave()
	running := s.monitor.Windows.Running()
	ended := s.monitor.Windows.Ended()
	w.Header().Set("Content-Type", "application/json")
	out := bufio.NewWriterSize(w, 32<<10)
	_, _ = out.WriteString(`{"running":[`) // an error stays with out, and ends the writing below
	writeReports(out, running)
	_, _ = out.WriteString(`],"ended":[`)
	writeReports(out, ended)
	_, _ = out.WriteString("]}\n")
	_ = out.Flush() // the client is gone
	return nil
}

func writeReports(out *bufio.Writer, reports []*window.Report) {
	comma := ""
	for _, r := range reports {
		text, err := r.MarshalJSON()
		if err != nil {
			continue // a number that JSON cannot say: better the others than none
		}
		_, _ = out.WriteString(comma)
		if _, err := out.Write(text); err != nil {
			return
		}
		comma = ","
	}
}

func (s *Server) show(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	report := s.monitor.Windows.Report(id)
	if report == nil {
		return refuse(http.StatusNotFound, "no window has the id %s: it was never begun here, or ended over an hour ago", excerpt(id))
	}
	reply(w, http.StatusOK, report)
	return nil
}
