package api

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Whatever a client sends, it gets a response of HTTP with an error that is JSON, or the end of the connection.
func FuzzServer(f *testing.F) {
	const head = " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n"
	for _, request := range []string{
		"GET /v1/status" + head + "\r\n",
		"GET /v1/windows/x" + head + "\r\n",
		"GET /v1/events?last=3&follow=0" + head + "\r\n",
		"POST /v1/windows" + head + "Content-Length: 18\r\n\r\n{\"kind\":\"epoch\"}\r\n",
		"POST /v1/windows" + head + "Traceparent: " + someTrace + "\r\nContent-Length: 16\r\n\r\n{\"kind\":\"epoch\"}",
		"POST /v1/reports" + head + "Content-Length: 49\r\n\r\n" +
			`{"id":"a","kind":"epoch","verdict":"mixed","n":1}`,
		"POST /v1/windows/x/end" + head + "Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n",
		"DELETE /v1/windows" + head + "Origin: http://evil\r\n\r\n",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
	} {
		f.Add(request)
	}
	s := serve(f, nil)
	f.Fuzz(func(t *testing.T, request string) {
		c := s.dial(t)
		if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil { // a test that hangs, on a busy machine
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, request); err == nil {
			_ = c.CloseWrite()
		}
		answer, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			return // closed without a word, as for half of a request
		}
		body, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
		_ = answer.Body.Close()
		if err != nil && !strings.Contains(err.Error(), "EOF") && !strings.Contains(err.Error(), "reset") {
			t.Errorf("%q: got %q, %v", request, body, err)
		}
		if answer.StatusCode >= http.StatusInternalServerError && answer.StatusCode != http.StatusServiceUnavailable &&
			answer.StatusCode != http.StatusNotImplemented && answer.StatusCode != http.StatusHTTPVersionNotSupported {
			t.Errorf("%q: got %s %q", request, answer.Status, body)
		}
	})
}

// A client of events takes whatever a server sends: lines of JSON, or an error in one line.
func FuzzEventsClient(f *testing.F) {
	f.Add("{\"missed\":3}\n{}\n")
	f.Add("{")
	f.Add("\x1b]0;x\x07\n")
	var body string
	l, err := Listen(folder(f) + "/s")
	if err != nil {
		f.Fatal(err)
	}
	server := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, body)
	})}
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	f.Cleanup(func() {
		_ = server.Close()
		<-done
	})
	client := NewClient(l.Addr().String())
	f.Fuzz(func(t *testing.T, text string) {
		body = text
		err := client.Events(t.Context(), 1, false, func(line []byte) error {
			if strings.ContainsRune(string(line), '\n') {
				t.Errorf("%q: got %q, want one line", text, line)
			}
			return nil
		})
		if err != nil && strings.ContainsAny(err.Error(), "\n\x1b") {
			t.Errorf("%q: got error %q, want one line", text, err)
		}
	})
}
