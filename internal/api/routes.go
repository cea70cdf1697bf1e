package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"

	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/page"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/windows"
)

// routes maps the paths of docs/api.md. Each has an entry without a method, so that the response to a wrong method is
// JSON, too.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	handle := func(path string, methods map[string]handler) {
		allowed := ""
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			if h := methods[method]; h != nil {
				mux.Handle(method+" "+path, h)
				allowed += ", " + method
			}
		}
		mux.Handle(path, wrongMethod(allowed[len(", "):]))
	}
	handle("/v1/windows", map[string]handler{http.MethodGet: s.list, http.MethodPost: s.begin})
	handle("/v1/reports", map[string]handler{http.MethodPost: s.reportedWindow})
	handle("/v1/windows/{id}", map[string]handler{http.MethodGet: s.show})
	handle("/v1/windows/{id}/end", map[string]handler{http.MethodPost: s.end})
	handle("/v1/events", map[string]handler{http.MethodGet: s.follow, http.MethodPost: s.reported})
	handle("/v1/events/test", map[string]handler{http.MethodPost: s.try})
	handle(page.JobsPath, map[string]handler{http.MethodGet: s.jobs})
	handle("/v1/gpus/release", map[string]handler{http.MethodPost: s.release})
	handle("/v1/logs", map[string]handler{http.MethodPost: s.readLog})
	handle("/v1/history", map[string]handler{http.MethodGet: s.history})
	handle("/metrics", map[string]handler{http.MethodGet: s.scrape})
	handle("/v1/status", map[string]handler{http.MethodGet: s.status})
	handle(page.LivePath, map[string]handler{http.MethodGet: s.view})
	handle(page.LivePath+"/live", map[string]handler{http.MethodGet: s.watch})
	handle("/{$}", map[string]handler{http.MethodGet: s.shell})
	mux.Handle("/", handler(func(_ http.ResponseWriter, r *http.Request) error {
		return refuse(http.StatusNotFound, "there is no %s: the paths are /, /metrics, /v1/windows, /v1/windows/ID, "+
			"/v1/windows/ID/end, /v1/reports, /v1/events, /v1/events/test, /v1/gpus/release, /v1/history, /v1/jobs, "+
			"/v1/logs, /v1/page, /v1/page/live and /v1/status", excerpt(r.URL.Path))
	}))
	return noPages(s.admitTCP(mux))
}

// isShell reports whether a request is for the page itself, which holds no data. A link of another site may lead to it.
func isShell(r *http.Request) bool { return r.Method == http.MethodGet && r.URL.Path == "/" }

// isData reports whether a request is for data that the page shows.
func isData(r *http.Request) bool {
	path := r.URL.Path
	return r.Method == http.MethodGet && (path == page.LivePath || path == page.LivePath+"/live" || path == page.JobsPath)
}

// noPages refuses requests of pages in a browser, which must not open windows or take all event streams on a loopback
// port. Programs do not send these headers, and a browser sends "none" for an address that its user has entered. This
// server's own page may read its data, and nothing else.
func noPages(next http.Handler) http.Handler {
	return handler(func(w http.ResponseWriter, r *http.Request) error {
		if isShell(r) || isData(r) && mayView(r) {
			next.ServeHTTP(w, r)
			return nil
		}
		if site := r.Header.Get("Sec-Fetch-Site"); r.Header.Get("Origin") != "" || site != "" && site != "none" {
			return refuse(http.StatusForbidden, "requests from pages of other sites are refused: use a program")
		}
		next.ServeHTTP(w, r)
		return nil
	})
}

// handler responds to a request, or returns an error before it writes anything.
type handler func(w http.ResponseWriter, r *http.Request) error

func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := h.respond(w, r); err != nil {
		e := asError(err, http.StatusInternalServerError)
		reply(w, e.Status, e)
		drain(w, r)
	}
}

// respond makes an error of a panic: it must not end the program around us, and the client learns of it.
func (h handler) respond(w http.ResponseWriter, r *http.Request) (err error) {
	failed := sample.Protect(func() { err = h(w, r) })
	if failed != nil {
		return refuse(http.StatusInternalServerError, "the request cannot be answered: %v", failed)
	}
	return err
}

// drain reads the rest of a refused request. Otherwise a client that is still sending would see a broken connection
// instead of the response. A client that waits for "100 Continue" sends nothing.
func drain(w http.ResponseWriter, r *http.Request) {
	control := http.NewResponseController(w)
	if r.Header.Get("Expect") != "" || control.EnableFullDuplex() != nil || control.Flush() != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, r.Body, maxDrained) // until readTimeout
}

func wrongMethod(allowed string) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		w.Header().Set("Allow", allowed)
		return refuse(http.StatusMethodNotAllowed, "the method %s is not supported here: use %s", excerpt(r.Method), allowed)
	}
}

// reply writes v as one line of JSON. It ignores errors: the client is gone.
func reply(w http.ResponseWriter, status int, v any) {
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		status = http.StatusInternalServerError
		line.Reset()
		_ = enc.Encode(refuse(status, "the response cannot be written as JSON, please report this: %v", err))
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(line.Len()))
	w.WriteHeader(status)
	_, _ = w.Write(line.Bytes())
}

func (s *Server) begin(w http.ResponseWriter, r *http.Request) error {
	body, err := read(w, r)
	if err != nil {
		return err
	}
	a, err := decode(body)
	if err != nil {
		return err
	}
	who := peerOfRequest(r.Context())
	if who.anonymous() && (a.PID != 0 || a.Path != "") {
		return refuse(http.StatusForbidden, "pid and path need a process that the server can see, on its unix socket, or a "+
			"port with token_file: leave them out")
	}
	if a.PID != 0 && !s.callers.mayName(&who.caller, a.PID) {
		return refuse(http.StatusForbidden, "process %d belongs to someone else: name one of your own", a.PID)
	}
	id, own, err := s.windows.Begin(a.window(&who.caller), a.parent)
	if err != nil {
		return asError(err, http.StatusBadRequest)
	}
	w.Header().Set("Location", "/v1/windows/"+id)
	reply(w, http.StatusCreated, Begun{ID: id, Traceparent: own})
	return nil
}

// read returns the body of a request. It accepts the Content-Type that curl -d and Python's urllib send by default.
func read(w http.ResponseWriter, r *http.Request) ([]byte, error) { return readMost(w, r, maxBody) }

func readMost(w http.ResponseWriter, r *http.Request, most int64) ([]byte, error) {
	if header := r.Header.Get("Content-Type"); header != "" {
		kind, _, err := mime.ParseMediaType(header)
		if err != nil || kind != "application/json" && kind != "application/x-www-form-urlencoded" {
			return nil, refuse(http.StatusUnsupportedMediaType, "the Content-Type is %s: send application/json", excerpt(header))
		}
	}
	if r.ContentLength > most {
		return nil, bodyError(&http.MaxBytesError{Limit: most}) // before reading it
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if err != nil {
		return nil, bodyError(err)
	}
	return body, nil
}

func (s *Server) end(w http.ResponseWriter, r *http.Request) error {
	body, err := read(w, r)
	if err != nil {
		return err
	}
	e, err := decodeEnding(body)
	if err != nil {
		return err
	}
	id := r.PathValue("id")
	if err := s.owned(r, id); err != nil {
		return err
	}
	report, err := s.windows.End(id, e.Outcome, e.attributes)
	if errors.Is(err, windows.ErrUnknown) && s.monitor.Windows.Report(id) != nil {
		return refuse(http.StatusNotFound, "the window %s has ended already: see stallspan ls --id %s, or GET /v1/windows/%s",
			excerpt(id), id, id)
	}
	if err != nil {
		return err
	}
	reply(w, http.StatusOK, explain.NewReport(report))
	return nil
}

// owned returns why a caller may not read or end a window.
func (s *Server) owned(r *http.Request, id string) error {
	client, known := s.monitor.Windows.ClientOf(id)
	if !known || peerOfRequest(r.Context()).owns(client) {
		return nil
	}
	return refuse(http.StatusForbidden, "the window %s belongs to someone else: only its user, in its container, root "+
		"and the server's user can read or end it", excerpt(id))
}
