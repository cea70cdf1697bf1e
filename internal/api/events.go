package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/internal/alert"
	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/trust"
)

// maxStreams is the limit of clients that follow events. Each holds one of maxConnections.
const maxStreams = 16

// Events gives a Server access to events.
type Events struct {
	Board *alert.Board

	// Try emits an event of that name, marked as a test, and waits for the actions or the end of ctx. It returns an error
	// for an unknown name. Try is nil if the server cannot emit test events.
	Try func(ctx context.Context, name string) (Tried, error)

	// Reported takes an event of another program, and the span that it belongs to, which may be invalid. It is nil if the
	// server takes none.
	Reported func(e emit.Event, within trace.SpanContext)

	// Export returns what became of the exported signals, for GET /v1/status. It may be nil.
	Export func() ExportStatus

	// Trouble returns a line for each failing action and for dropped events, for GET /v1/status. It may be nil.
	Trouble func() []string
}

// Tried is the response to POST /v1/events/test.
type Tried struct {
	Event   json.RawMessage `json:"event"`   // as in GET /v1/events
	Logs    string          `json:"logs"`    // what happened to the log record
	Actions []TriedAction   `json:"actions"` // actions for such an event, in the order of the config
}

// TriedAction is the result of one action.
type TriedAction struct {
	Action string  `json:"action"` // "exec /usr/local/bin/page", "webhook https://example.com"
	OK     bool    `json:"ok"`
	Says   string  `json:"says"`   // one line
	Took   float64 `json:"took_s"` // seconds; 0 if it has not ended
}

// With makes the server serve events. Call it before Serve. Without it, requests for events fail.
func (s *Server) With(e Events) *Server {
	s.events = e
	return s
}

// missed is the line of a stream in place of events that were too many for its client.
type missed struct {
	Missed uint64 `json:"missed"`
}

// follow writes the events that a client may see as they happen, one line of JSON each, until it disconnects or the
// server stops. A client that reads nothing for writeTimeout is disconnected.
func (s *Server) follow(w http.ResponseWriter, r *http.Request) error {
	last, once, err := eventQuery(r)
	if err != nil {
		return err
	}
	if s.events.Board == nil {
		return refuse(http.StatusNotFound, "this server has no events: use stallspan agent, or a Collector with the "+
			"receiver stallspan in a pipeline of traces or logs")
	}
	who := peerOfRequest(r.Context())
	if err := s.streams.Take(who.name); errors.Is(err, trust.ErrShare) {
		return refuse(http.StatusServiceUnavailable, "%d of your programs follow the events already: stop one of them",
			s.streams.Each())
	} else if err != nil {
		return refuse(http.StatusServiceUnavailable, "%d clients follow the events already: stop one of them", maxStreams)
	}
	defer s.streams.Release(who.name)
	control := http.NewResponseController(w)
	if err := control.SetReadDeadline(time.Time{}); err != nil { // the request would end after readTimeout
		return err
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.WriteHeader(http.StatusOK)
	at := s.events.Board.Last(last)
	for {
		events, next, left, changed := s.events.Board.Read(at)
		at = next
		lines := make([][]byte, 0, 1+len(events))
		if left > 0 {
			line, _ := json.Marshal(missed{left}) // a number cannot fail
			lines = append(lines, append(line, '\n'))
		}
		for _, e := range events {
			if who.privileged() || who.sees(nameOf(e.Line), e.Client) {
				lines = append(lines, e.Line)
			}
		}
		if err := s.send(w, control, lines); err != nil || once && changed != nil {
			return nil // the client is gone, or has everything
		}
		if changed == nil {
			continue
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return nil
		case <-s.ending:
			return nil
		}
	}
}

func (s *Server) send(w http.ResponseWriter, control *http.ResponseController, lines [][]byte) error {
	if err := control.SetWriteDeadline(time.Now().Add(s.http.WriteTimeout)); err != nil {
		return err
	}
	for _, line := range lines {
		if _, err := w.Write(line); err != nil {
			return err
		}
	}
	return control.Flush() // the header, too, so that the client knows that it follows
}

// eventQuery reads the query of GET /v1/events.
func eventQuery(r *http.Request) (last int, once bool, err error) {
	for key, values := range r.URL.Query() {
		value := values[len(values)-1]
		switch key {
		case "last":
			if last, err = strconv.Atoi(value); err != nil || last < 0 {
				return 0, false, refuse(http.StatusBadRequest, "last is the number of recent events to send first, not %s",
					excerpt(value))
			}
		case "follow":
			if value != "0" && value != "1" {
				return 0, false, refuse(http.StatusBadRequest, "follow must be 0 or 1, not %s", excerpt(value))
			}
			once = value == "0"
		default:
			return 0, false, refuse(http.StatusBadRequest, "unknown parameter %s: use last and follow", excerpt(key))
		}
	}
	return last, once, nil
}

// tryTimeout is how long a test event waits for the actions.
const tryTimeout = 75 * time.Second

func (s *Server) try(w http.ResponseWriter, r *http.Request) error {
	body, err := read(w, r)
	if err != nil {
		return err
	}
	var request struct {
		Name string `json:"name"`
	}
	if err := unmarshal(body, &request, `{"name":"stallspan.gpu.lost"}`, "name"); err != nil {
		return err
	}
	if s.events.Try == nil {
		return refuse(http.StatusNotFound, "this server cannot emit test events: use stallspan agent")
	}
	if who := peerOfRequest(r.Context()); !s.local || !who.privileged() {
		return refuse(http.StatusForbidden, "test events may start programs: send them as root or as the agent's user, over "+
			"its unix socket")
	}
	control := http.NewResponseController(w)
	deadline := time.Now().Add(tryTimeout + writeTimeout)
	if err := errors.Join(control.SetReadDeadline(time.Time{}), control.SetWriteDeadline(deadline)); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), tryTimeout)
	defer cancel()
	tried, err := s.events.Try(ctx, request.Name)
	if err != nil {
		return refuse(http.StatusBadRequest, "%v", err)
	}
	reply(w, http.StatusOK, tried)
	return nil
}

// Events calls take with each line of the newest n events, and of later ones if follow is set. It returns when take
// returns an error, or when the server or ctx ends.
func (c *Client) Events(ctx context.Context, n int, follow bool, take func(line []byte) error) error {
	path := fmt.Sprintf("/v1/events?last=%d&follow=%d", n, map[bool]int{true: 1}[follow])
	return c.stream(ctx, path, take)
}

// Try emits a test event and returns what the actions did.
func (c *Client) Try(ctx context.Context, name string) (Tried, error) {
	patient := *c
	patient.http.Timeout = tryTimeout + callTimeout
	body := map[string]string{"name": name}
	return ask(ctx, &patient, http.MethodPost, "/v1/events/test", body, func(*Tried) bool { return true })
}
