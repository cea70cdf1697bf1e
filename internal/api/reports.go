package api

import (
	"bufio"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/internal/windows"
)

// listingPause is the time between two attempts to begin a listing.
const listingPause = 5 * time.Millisecond

// acquire waits until fewer than maxListings requests build all reports, which takes time and memory. A client has a
// share of them. acquire ignores the request's context, which ends when a client closes its sending half although it
// still reads.
func (s *Server) acquire(client string) (release func(), err error) {
	for until := time.Now().Add(readTimeout); ; time.Sleep(listingPause) {
		if s.listings.Take(client) == nil {
			return func() { s.listings.Release(client) }, nil
		}
		if time.Now().After(until) {
			return nil, refuse(http.StatusServiceUnavailable, "too many requests for all reports: try again in a few seconds")
		}
	}
}

// list writes reports one by one, so that the text of thousands is not in memory at once.
func (s *Server) list(w http.ResponseWriter, r *http.Request) error {
	release, err := s.acquire(peerOfRequest(r.Context()).name)
	if err != nil {
		return err
	}
	defer release()
	who := peerOfRequest(r.Context())
	others := func(r *window.Report) bool { return !who.lists(r.Client) }
	running := slices.DeleteFunc(s.monitor.Windows.Running(), others)
	ended := slices.DeleteFunc(s.monitor.Windows.Ended(), others)
	w.Header().Set("Content-Type", "application/json")
	out := bufio.NewWriterSize(newPatientWriter(w), 32<<10)
	_, _ = out.WriteString(`{"running":[`) // out keeps the first error
	writeReports(out, "", running, explain.NewReport)
	_, _ = out.WriteString(`],"ended":[`)
	comma := writeReports(out, "", ended, explain.NewReport)
	writeReports(out, comma, s.others(who), func(m windows.Reported) *explain.Report { return m.Report })
	_, _ = out.WriteString("]}\n")
	_ = out.Flush() // fails if the client is gone
	return nil
}

// writeReports writes reports as JSON, until the client is gone. It returns what stands before the next one.
func writeReports[T any](out *bufio.Writer, comma string, list []T, report func(T) *explain.Report) string {
	for _, one := range list {
		text, err := json.Marshal(report(one))
		if err != nil {
			continue // JSON cannot represent each number
		}
		_, _ = out.WriteString(comma)
		if _, err := out.Write(text); err != nil {
			break
		}
		comma = ","
	}
	return comma
}

func (s *Server) show(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	if err := s.owned(r, id); err != nil {
		return err
	}
	report := s.monitor.Windows.Report(id)
	if report == nil {
		for _, m := range s.others(peerOfRequest(r.Context())) {
			if m.Report.ID == id {
				reply(w, http.StatusOK, m.Report)
				return nil
			}
		}
		return refuse(http.StatusNotFound, "no window has the ID %s: it is unknown, or ended over an hour ago", excerpt(id))
	}
	reply(w, http.StatusOK, explain.NewReport(report))
	return nil
}
