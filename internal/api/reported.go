package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/trust"
	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/internal/windows"
)

// maxReported is the limit of events that programs report in reportPeriod: see trust.Rate.
const (
	maxReported  = 240
	reportPeriod = time.Minute
)

// reportedExample is the body of POST /v1/events in messages.
const reportedExample = `{"name":"stallspan.window.slow","body":"…","attributes":{…}}`

// reported takes an event of a slow window that a program such as stallspan run has measured by itself. Who it is comes
// from the connection alone.
func (s *Server) reported(w http.ResponseWriter, r *http.Request) error {
	body, err := read(w, r)
	if err != nil {
		return err
	}
	var j emit.EventJSON
	if err := unmarshal(body, &j, reportedExample, "attributes", "body", "id", "name", "resolved", "severity", "span_id",
		"test", "time", "trace_id"); err != nil {
		return err
	}
	if s.events.Reported == nil {
		return refuse(http.StatusNotFound, "this server takes no events: use stallspan agent, or a Collector with the "+
			"receiver stallspan in a pipeline of traces or logs")
	}
	reporter, err := s.reporter(r)
	if err != nil {
		return err
	}
	e, span, err := emit.Reported(&j, reporter, time.Now())
	if err != nil {
		return refuse(http.StatusBadRequest, "%v", err)
	}
	if err := take(s.eventRate, r, maxReported, "events"); err != nil {
		return err
	}
	s.events.Reported(e, span)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// reporter is who reports, by what the kernel says.
func (s *Server) reporter(r *http.Request) (string, error) {
	who := peerOfRequest(r.Context())
	switch {
	case !s.local || who.anonymous():
		return "", refuse(http.StatusForbidden, "a report needs a reporter who is known: use the unix socket, not TCP")
	case who.name != "":
		return who.name, nil
	}
	return "uid " + strconv.Itoa(who.uid), nil
}

// take counts one report against what a minute allows.
func take(places *trust.Rate, r *http.Request, most int, what string) error {
	err := places.Take(peerOfRequest(r.Context()).name, sample.Now().Mono)
	switch {
	case errors.Is(err, trust.ErrShare):
		return refuse(http.StatusTooManyRequests, "you have reported your part of %d %s in a minute: wait", most, what)
	case err != nil:
		return refuse(http.StatusTooManyRequests, "too many clients have reported %s in a minute: wait", what)
	}
	return nil
}

// Report hands the server an event of a slow window. The error is an *Error if the server refused it.
func (c *Client) Report(ctx context.Context, e *emit.Event) error {
	_, err := c.call(ctx, http.MethodPost, "/v1/events", json.RawMessage(e.JSON()))
	return err
}

// maxReportedWindows is the limit of windows that programs report in reportPeriod: see trust.Rate.
const maxReportedWindows = 2400

// tolerance is how far the clocks may move against each other.
const tolerance = time.Second

// reportedWindow takes a window that ended, and that a program such as stallspan run has measured by itself. Its user
// and root see it, with the name of its reporter. It has no span, metric or event of the server.
func (s *Server) reportedWindow(w http.ResponseWriter, r *http.Request) error {
	reporter, err := s.reporter(r)
	if err != nil {
		return err
	}
	body, err := read(w, r)
	if err != nil {
		return err
	}
	report, err := decodeReport(body)
	if err != nil {
		return err
	}
	if err := take(s.windowRate, r, maxReportedWindows, "windows"); err != nil {
		return err
	}
	now := sample.Now()
	if ago := now.Wall.Sub(report.End); ago < -tolerance || ago > windows.Keep || report.Start.After(report.End) ||
		report.End.Sub(report.Start) > windows.MaxLength {
		return refuse(http.StatusBadRequest, "a window is reported when it has ended, within an hour: "+
			"its start is %s and its end %s", report.Start.Format(time.RFC3339), report.End.Format(time.RFC3339))
	}
	started, known := s.monitor.History().Mono(report.Start, now.Mono)
	ended, also := s.monitor.History().Mono(report.End, now.Mono)
	if !known || !also {
		return refuse(http.StatusServiceUnavailable, "the time of the window cannot be placed: the clock was set")
	}
	report.Reporter, report.Duration = reporter, report.End.Sub(report.Start).Seconds()
	text, err := json.Marshal(report)
	if err != nil {
		return refuse(http.StatusBadRequest, "the report cannot be kept: %v", err)
	}
	client := peerOfRequest(r.Context()).name
	s.monitor.Windows.Reported.Add(windows.Reported{
		Report: report, Size: len(text), Client: client, Start: started, End: min(ended, now.Mono),
	}, now.Mono)
	if s.past != nil {
		s.past.Keep(report.End, client, text)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// decodeReport reads a report of another program, of this version or another one. Unknown keys are left out, and
// control characters become spaces.
func decodeReport(body []byte) (*explain.Report, error) {
	var given map[string]any
	if err := json.Unmarshal(body, &given); err != nil {
		return nil, refuse(http.StatusBadRequest, "the body is no report of a window, as in GET /v1/windows: %s",
			excerpt(err.Error()))
	}
	clean, err := json.Marshal(withoutControl(given))
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "the body cannot be read: %s", excerpt(err.Error()))
	}
	var r explain.Report
	if err := json.Unmarshal(clean, &r); err != nil {
		return nil, refuse(http.StatusBadRequest, "the body is no report of a window, as in GET /v1/windows: %s",
			excerpt(err.Error()))
	}
	switch {
	case !isID(r.ID):
		return nil, refuse(http.StatusBadRequest, "id is %s: send the ID of a window", excerpt(r.ID))
	case !r.Kind.Valid():
		return nil, refuse(http.StatusBadRequest, "kind is %s: use %s", excerpt(string(r.Kind)), window.KindChoices)
	case !r.Verdict.Valid():
		return nil, refuse(http.StatusBadRequest, "verdict is %s: send one of stallspan docs verdicts",
			excerpt(string(r.Verdict)))
	}
	return &r, nil
}

// withoutControl replaces control characters in all texts of a value.
func withoutControl(value any) any {
	switch value := value.(type) {
	case string:
		return strings.Map(func(c rune) rune {
			if unicode.IsControl(c) {
				return ' '
			}
			return c
		}, value)
	case []any:
		for i := range value {
			value[i] = withoutControl(value[i])
		}
	case map[string]any:
		for key := range value {
			value[key] = withoutControl(value[key])
		}
	}
	return value
}

// others returns the windows that a caller may see and other programs have measured.
func (s *Server) others(who *connected) []windows.Reported {
	return slices.DeleteFunc(s.monitor.Windows.Reported.All(sample.Now().Mono), func(m windows.Reported) bool {
		return !who.lists(m.Client)
	})
}

// ReportWindow hands the server a window that ended. The error is an *Error if the server refused it.
func (c *Client) ReportWindow(ctx context.Context, r *explain.Report) error {
	_, err := c.call(ctx, http.MethodPost, "/v1/reports", r)
	return err
}
