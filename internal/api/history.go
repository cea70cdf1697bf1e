package api

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/store"
)

// Past is the past of the machine in files.
type Past interface {
	// Copy writes what is between two times, zero for no limit, in the form of the store's files. With shows, it leaves
	// out the jobs, and the windows and events for which that is false.
	Copy(to io.Writer, from, until time.Time, shows func(store.Entry) bool) error
	// Keep takes a window of a client that ended, as JSON. It does not wait.
	Keep(ended time.Time, client string, report []byte)
	// JobTimes returns the time of GPUs and jobs between two moments, zero for no limit, also of earlier programs, and who
	// the jobs are. With an error, it is that of this program.
	JobTimes(since, until time.Time) ([]sample.GPUTime, []sample.JobName, error)
	// Oldest returns the first time that may be there. It does not wait.
	Oldest() (at time.Time, ok bool)
}

// Keeping makes the server serve the past. Call it before Serve.
func (s *Server) Keeping(p Past) *Server {
	s.past = p
	return s
}

// history writes the past as blocks of the store. They are copied and not looked into, so that a week costs little.
func (s *Server) history(w http.ResponseWriter, r *http.Request) error {
	from, until, err := historyQuery(r)
	if err != nil {
		return err
	}
	who := peerOfRequest(r.Context())
	if who.anonymous() {
		return refuse(http.StatusForbidden, "the history is for a caller who is known: use the agent's unix socket from a "+
			"process that it can see, or a port with token_file")
	}
	if s.past == nil {
		return refuse(http.StatusNotFound, "this server keeps no history: use stallspan agent, with history.enabled in its "+
			"config")
	}
	if err := s.copies.Take(who.name); err != nil {
		return refuse(http.StatusServiceUnavailable, "too many requests for the history: try again in a few seconds")
	}
	defer s.copies.Release(who.name)
	w.Header().Set("Content-Type", "application/octet-stream")
	to := newPatientWriter(w)
	if err := s.past.Copy(to, from, until, who.entries()); err != nil && !to.begun {
		return refuse(http.StatusServiceUnavailable, "%v", err)
	} else if err != nil {
		_ = to.control.SetWriteDeadline(time.Now()) // so that the client does not take a part for the whole
	}
	return nil
}

// patientWriter gives a client writeTimeout for each part of a response, in place of the whole and of the time that
// making it takes.
type patientWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
	begun   bool
}

func newPatientWriter(w http.ResponseWriter) *patientWriter {
	return &patientWriter{w: w, control: http.NewResponseController(w)}
}

func (p *patientWriter) Write(text []byte) (int, error) {
	p.begun = true
	if err := p.control.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return 0, err
	}
	return p.w.Write(text)
}

// historyQuery reads the query of GET /v1/history and /v1/jobs: Unix seconds.
func historyQuery(r *http.Request) (from, until time.Time, err error) {
	for key, values := range r.URL.Query() {
		value := values[len(values)-1]
		into := map[string]*time.Time{"since": &from, "until": &until}[key]
		if into == nil {
			return from, until, refuse(http.StatusBadRequest, "unknown parameter %s: use since and until", excerpt(key))
		}
		seconds, err := strconv.ParseInt(value, 10, 48)
		if err != nil {
			return from, until, refuse(http.StatusBadRequest, "%s is a time in Unix seconds, not %s", key, excerpt(value))
		}
		*into = time.Unix(seconds, 0)
	}
	return from, until, nil
}

// History returns what is between two times, zero for no limit, in the form of the store's files. The caller closes it.
func (c *Client) History(ctx context.Context, from, until time.Time) (io.ReadCloser, error) {
	return c.open(ctx, "/v1/history?"+between(from, until))
}

// between is the query of two times, zero for no limit.
func between(from, until time.Time) string {
	query := url.Values{}
	for key, at := range map[string]time.Time{"since": from, "until": until} {
		if !at.IsZero() {
			query.Set(key, strconv.FormatInt(at.Unix(), 10))
		}
	}
	return query.Encode()
}
