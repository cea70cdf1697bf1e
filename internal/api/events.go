package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/stallspan/stallspan/internal/alert"
)

// mostStreams bounds how many clients are shown events at once; each holds one of mostConnections.
const mostStreams = 16

// Events is what a Server shows of events, and how one is tried.
type Events struct {
	Board *alert.Board

	// Try makes an event of that name that says of itself that it is a test, waits until the actions have done what they
	// do, or ctx ends, and says what came of it. An error says that there is no such event. It is nil where none can be
	// tried.
	Try func(ctx context.Context, name string) (Tried, error)

	// Trouble says in a line each which actions fail, and what was left out, for GET /v1/status. It may be nil.
	Trouble func() []string
}

// Tried is the answer to POST /v1/events/test.
type Tried struct {
	Event   json.RawMessage `json:"event"`   // as GET /v1/events shows it
	Logs    string          `json:"logs"`    // what became of the log record, in words
	Actions []TriedAction   `json:"actions"` // those that are for such an event, in the order of the config
}

// TriedAction is what one action did.
type TriedAction struct {
	Action string  `json:"action"` // "exec /usr/local/bin/page", "webhook https://example.com"
	OK     bool    `json:"ok"`
	Says   string  `json:"says"`   // one line
	Took   float64 `json:"took_s"` // seconds; 0 for one that has not ended
}

// With has the server show events, before Serve. Without it, it says that nobody keeps them there.
func (s *Server) With(e Events) *Server {
	s.events = e
	return s
}

// missed is the line of a stream that stands for events that came too fast for its client.
type missed struct {
	Missed uint64 `json:"missed"`
}

// follow writes events as they happen, one line of JSON each, until the client leaves or the server stops. A client that
// takes nothing for writeTimeout is cut off.
func (s *Server) follow(w http.ResponseWriter, r *http.Request) error {
	last, once, err := asked(r)
	if err != nil {
		return err
	}
	if s.events.Board == nil {
		return refuse(http.StatusNotFound, "no events are kept here: ask stallspan agent, or a Collector with the receiver stallspan in a pipeline of traces or logs")
	}
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		return refuse(http.StatusServiceUnavailable, "%d others look at the events already: end one of them", mostStreams)
	}
	control := http.NewResponseController(w)
	if err := control.SetReadDeadline(time.Time{}); err != nil { // else the request would end after readTimeout
		return err
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.WriteHeader(http.StatusOK)
	at := s.events.Board.Last(last)
	for {
		lines, next, left, changed := s.events.Board.Read(at)
		at = next
		if left > 0 {
			line, _ := json.Marshal(missed{left}) // a number always can
			lines = append([][]byte{append(line, '\n')}, lines...)
		}
		if err := s.send(w, control, lines); err != nil || once && changed != nil {
			return nil // it is gone, or has all
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
	if err := control.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	for _, line := range lines {
		if _, err := w.Write(line); err != nil {
			return err
		}
	}
	return control.Flush() // the header, too, so that a client knows that it is there
}

// asked reads what GET /v1/events may be asked for.
func asked(r *http.Request) (last uint64, once bool, err error) {
	for key, values := range r.URL.Query() {
		value := values[len(values)-1]
		switch key {
		case "last":
			if last, err = strconv.ParseUint(value, 10, 32); err != nil {
				return 0, false, refuse(http.StatusBadRequest, "last is how many of the newest events come first, a whole number, not %s", excerpt(value))
			}
		case "follow":
			if value != "0" && value != "1" {
				return 0, false, refuse(http.StatusBadRequest, "follow is 1 or 0, not %s", excerpt(value))
			}
			once = value == "0"
		default:
			return 0, false, refuse(http.StatusBadRequest, "unknown parameter %s: use last and follow", excerpt(key))
		}
	}
	return last, once, nil
}

// tryFor bounds how long a try of an event waits for the actions.
const tryFor = 75 * time.Second

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
		return refuse(http.StatusNotFound, "no event can be tried here: ask stallspan agent")
	}
	if !s.local {
		return refuse(http.StatusForbidden, "an event is tried on the agent's unix socket alone, not over TCP: it may start programs")
	}
	control := http.NewResponseController(w)
	if err := errors.Join(control.SetReadDeadline(time.Time{}), control.SetWriteDeadline(time.Now().Add(tryFor+writeTimeout))); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), tryFor)
	defer cancel()
	tried, err := s.events.Try(ctx, request.Name)
	if err != nil {
		return refuse(http.StatusBadRequest, "%v", err)
	}
	reply(w, http.StatusOK, tried)
	return nil
}

// Events asks for the newest n events, and for those to come where follow is set, and gives each line to take until it
// returns an error, the server ends or ctx does.
func (c *Client) Events(ctx context.Context, n int, follow bool, take func(line []byte) error) error {
	path := fmt.Sprintf("/v1/events?last=%d&follow=%d", n, map[bool]int{true: 1}[follow])
	return c.stream(ctx, path, take)
}

// Try makes an event of a name that is a test, and says what the actions did.
func (c *Client) Try(ctx context.Context, name string) (Tried, error) {
	body, err := json.Marshal(map[string]string{"name": name})
	if err != nil {
		return Tried{}, err
	}
	patient := *c
	patient.http.Timeout = tryFor + callTimeout
	answer, err := patient.post(ctx, "/v1/events/test", body)
	if err != nil {
		return Tried{}, err
	}
	var tried Tried
	if err := json.Unmarshal(answer, &tried); err != nil {
		return Tried{}, c.foreign(answer)
	}
	return tried, nil
}
