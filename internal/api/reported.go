package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/trust"
)

// maxReported is the limit of events that programs report in reportPeriod. A client has a share of them.
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
	case !s.local || who.uid < 0:
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
		return refuse(http.StatusTooManyRequests, "you have reported %d %s in a minute: wait", most/trust.Share, what)
	case err != nil:
		return refuse(http.StatusTooManyRequests, "%d %s were reported in a minute: wait", most, what)
	}
	return nil
}

// Report hands the server an event of a slow window. The error is an *Error if the server refused it.
func (c *Client) Report(ctx context.Context, e *emit.Event) error {
	_, err := c.post(ctx, "/v1/events", json.RawMessage(e.JSON()))
	return err
}
