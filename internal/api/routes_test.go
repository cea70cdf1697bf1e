package api

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/internal/windows"
)

func TestRefusedRequests(t *testing.T) {
	s := serve(t, nil)
	form := []string{"Content-Type", "application/x-www-form-urlencoded"}
	good := `{"kind":"epoch"}`
	for _, c := range []struct {
		method, path, body string
		header             []string
		status             int
		want               string
	}{
		{"GET", "/index.html", "", nil, 404, `there is no "/index.html": the paths are /, /metrics, /v1/windows,`},
		{"POST", "/", "", nil, 405, `"POST" is not supported here: use GET`},
		{"POST", "/v1/page", "", nil, 405, "use GET"},
		{"POST", "/v1/page", "", []string{"Sec-Fetch-Site", "same-origin"}, 403, "pages of other sites"},
		{"GET", "/v1/page", "", []string{"Sec-Fetch-Site", "cross-site"}, 403, "pages of other sites"},
		{"GET", "/v1/page/live", "", []string{"Sec-Fetch-Site", "same-site"}, 403, "pages of other sites"},
		{"GET", "/v1/page", "", []string{"Origin", "http://example.com"}, 403, "pages of other sites"},
		{"GET", "/v1/jobs", "", []string{"Sec-Fetch-Site", "cross-site"}, 403, "pages of other sites"},
		{"GET", "/v1/windows", "", []string{"Sec-Fetch-Site", "same-origin"}, 403, "pages of other sites"},
		{"GET", "/v1/jobs?since=yesterday", "", nil, 400, `since is a time in Unix seconds`},
		{"GET", "/v1/jobs?from=1", "", nil, 400, "use since and until"},
		{"GET", "/v1/page?minutes=1", "", nil, 400, "unknown parameter \"minutes\": use seconds, or from and to"},
		{"GET", "/v1/page?seconds=-1", "", nil, 400, "seconds\" is a number of seconds"},
		{"GET", "/v1/page?from=10", "", nil, 400, "from and to are seconds since 1970"},
		{"GET", "/v1/page?from=20&to=10", "", nil, 400, "from and to are seconds since 1970"},
		{"GET", "/v1/page?from=10&to=20", "", nil, 400, "is not known here"},
		{"GET", "/v2/windows", "", nil, 404, `there is no "/v2/windows"`},
		{"GET", "/v1/windows/", "", nil, 404, `there is no "/v1/windows/"`},
		{"POST", "/v1/windows/a/b", "", nil, 404, `there is no`},
		{"GET", "/v1/windows/0123456789abcdef", "", nil, 404, `no window has the ID "0123456789abcdef"`},
		{"POST", "/v1/windows/0123456789abcdef/end", "", nil, 404, "no open window has that id"},
		{"POST", "/v1/windows/%00%0a%ff/end", "", nil, 404, "no open window has that id"},
		{"GET", "/v1/windows/%00%0a%ff", "", nil, 404, `no window has the ID "\x00\n\xff"`},
		{"GET", "/v1/windows/" + strings.Repeat("x", 5000), "", nil, 404, `no window has the ID "xxx`},

		{"DELETE", "/v1/windows", "", nil, 405, `"DELETE" is not supported here: use GET, POST`},
		{"PUT", "/v1/windows/1", "", nil, 405, `"PUT" is not supported here: use GET`},
		{"GET", "/v1/windows/1/end", "", nil, 405, `"GET" is not supported here: use POST`},
		{"POST", "/v1/status", "", nil, 405, "use GET"},
		{"BREW", "/v1/status", "", nil, 405, "use GET"},

		{"POST", "/v1/windows", strings.Repeat(" ", maxBody+1), nil, 413, "the body is larger than 65536 bytes"},
		{"POST", "/v1/windows/1/end", strings.Repeat(" ", maxBody+1), nil, 413, "the body is larger than 65536 bytes"},
		{"POST", "/v1/windows", good, []string{"Content-Type", "text/plain"}, 415,
			`the Content-Type is "text/plain": send application/json`},
		{"POST", "/v1/windows", good, []string{"Content-Type", ";;"}, 415, `the Content-Type is ";;"`},
		{"POST", "/v1/windows", good, []string{"Sec-Fetch-Site", "cross-site"}, 403, "pages of other sites"},
		{"POST", "/v1/windows", good, []string{"Origin", "https://example.com"}, 403, "pages of other sites"},
		{"GET", "/v1/events", "", []string{"Sec-Fetch-Site", "cross-site"}, 403, "pages of other sites"},
		{"GET", "/v1/status", "", []string{"Sec-Fetch-Site", "same-origin"}, 403, "pages of other sites"},
		{"GET", "/v1/windows", "", []string{"Origin", "null"}, 403, "pages of other sites"},
		{"POST", "/v1/windows/1/end", `{"kind":"epoch"}`, form, 400, `unknown key "kind": use attributes, ended or failed`},
		{"POST", "/v1/windows/1/end", `{"failed":1}`, nil, 400, "failed must be true or false"},
		{"POST", "/v1/windows/1/end", `[]`, nil, 400, `send a JSON object like {"failed":true}, or no body`},
		{"POST", "/v1/windows/1/end", `{"failed":false}`, nil, 404, "no open window has that id"},
	} {
		status, header, body := s.do(t, c.method, c.path, c.body, c.header...)
		got := parseAs[Error](t, body)
		if status != c.status || !strings.Contains(got.Text, c.want) || strings.Contains(got.Text, "\n") {
			t.Errorf("%s %.60s: got %d %s, want %d %q", c.method, c.path, status, body, c.status, c.want)
		}
		if (status == http.StatusMethodNotAllowed) != (header.Get("Allow") != "") {
			t.Errorf("%s %.60s: got %d with Allow %q, want Allow with 405 only", c.method, c.path, status, header.Get("Allow"))
		}
	}
	if open := s.monitor.Windows.Running(); len(open) > 0 {
		t.Errorf("got %d windows opened, want none", len(open))
	}
}

// A client can send all of a body that is refused, and then read the response.
func TestRefusedBeforeItIsSent(t *testing.T) {
	s := serve(t, nil)
	c := s.dial(t)
	const header = "POST /v1/windows HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
	if _, err := fmt.Fprintf(c, header, 8*maxBody); err != nil {
		t.Fatal(err)
	}
	for range 8 {
		time.Sleep(5 * time.Millisecond)
		if _, err := c.Write(make([]byte, maxBody)); err != nil {
			t.Fatal(err)
		}
	}
	answer, err := io.ReadAll(c)
	if err != nil || !strings.Contains(string(answer), "413 ") ||
		!strings.Contains(string(answer), "larger than 65536 bytes") {
		t.Errorf("got %s, %v; want 413 and the limit", answer, err)
	}
}

// A user may enter the address of a port in a browser.
func TestEnteredInABrowser(t *testing.T) {
	if status, _, body := serve(t, nil).do(t, "GET", "/v1/status", "", "Sec-Fetch-Site", "none"); status != http.StatusOK {
		t.Errorf("got %d %s, want 200", status, body)
	}
}

func TestAcceptedContentTypes(t *testing.T) {
	s := serve(t, nil)
	for _, kind := range []string{"", "application/json", "Application/JSON; charset=utf-8",
		"application/x-www-form-urlencoded"} {
		var header []string
		if kind != "" {
			header = []string{"Content-Type", kind}
		}
		if status, _, body := s.do(t, "POST", "/v1/windows", `{"kind":"epoch"}`, header...); status != http.StatusCreated {
			t.Errorf("%q: got %d %s, want 201", kind, status, body)
		}
	}
}

// refusing is an implementation of Windows that always fails.
type refusing struct{ err error }

func (r refusing) Begin(window.Window, trace.SpanContext) (id, own string, err error) {
	return "", "", r.err
}
func (r refusing) End(string, window.Outcome, map[string]string) (*window.Report, error) {
	return nil, r.err
}

// faulty is an implementation of Windows with a bug.
type faulty struct{ refusing }

func (faulty) Begin(window.Window, trace.SpanContext) (id, own string, err error) {
	panic("index out of range")
}

// A panic is an answer and is counted, and the server goes on.
func TestPanicOfAHandler(t *testing.T) {
	s := serve(t, func(s *Server) { s.windows = faulty{} })
	before := sample.Panics()
	for range 2 {
		status, _, body := s.do(t, "POST", "/v1/windows", `{"kind":"epoch"}`)
		if text := parseAs[Error](t, body).Text; status != 500 || !strings.Contains(text, "index out of range") {
			t.Errorf("got %d %s, want 500 and the reason", status, body)
		}
	}
	if status, err := s.Status(t.Context()); err != nil || status.Panics != before+2 {
		t.Errorf("got %d panics in the status, %v; want %d", status.Panics, err, before+2)
	}
}

// TestStatusOfErrors checks the HTTP status of each error of Windows.
func TestStatusOfErrors(t *testing.T) {
	for _, c := range []struct {
		err        error
		begin, end int
	}{
		{windows.ErrTooMany, 503, 503},
		{windows.ErrUnknown, 404, 404},
		{refuse(429, "slow down"), 429, 429},
		{errors.New("process 7 is gone"), 400, 500},
	} {
		s := serve(t, func(s *Server) { s.windows = refusing{c.err} })
		status, _, body := s.do(t, "POST", "/v1/windows", `{"kind":"epoch"}`)
		if status != c.begin || parseAs[Error](t, body).Text != c.err.Error() {
			t.Errorf("begin, %v: got %d %s, want the status of the error", c.err, status, body)
		}
		status, _, body = s.do(t, "POST", "/v1/windows/1/end", "")
		if status != c.end || parseAs[Error](t, body).Text != c.err.Error() {
			t.Errorf("end, %v: got %d %s, want the status of the error", c.err, status, body)
		}
	}
}
