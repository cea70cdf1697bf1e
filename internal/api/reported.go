package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/quota"
	"github.com/stallspan/stallspan/internal/sample"
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
	who := peerOfRequest(r.Context())
	switch {
	case s.events.Reported == nil:
		return refuse(http.StatusNotFound, "this server takes no events: use stallspan agent, or a Collector with the "+
			"receiver stallspan in a pipeline of traces or logs")
	case !s.local || who.uid < 0:
		return refuse(http.StatusForbidden, "an event needs a reporter who is known: use the unix socket, not TCP")
	}
	reporter := who.name
	if reporter == "" {
		reporter = "uid " + strconv.Itoa(who.uid)
	}
	e, span, err := emit.Reported(&j, reporter, time.Now())
	if err != nil {
		return refuse(http.StatusBadRequest, "%v", err)
	}
	if err := s.reports.Take(who.name, sample.Now().Mono); errors.Is(err, quota.ErrShare) {
		return refuse(http.StatusTooManyRequests, "you have reported %d events in a minute: wait", maxReported/quota.Share)
	} else if err != nil {
		return refuse(http.StatusTooManyRequests, "%d events were reported in a minute: wait", maxReported)
	}
	s.events.Reported(e, span)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// Report hands the server an event of a slow window. The error is an *Error if the server refused it.
func (c *Client) Report(ctx context.Context, e *emit.Event) error {
	_, err := c.post(ctx, "/v1/events", json.RawMessage(e.JSON()))
	return err
}
