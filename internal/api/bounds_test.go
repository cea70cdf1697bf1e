package api

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/internal/windows"
)

// raw sends bytes on a connection and reads the response.
func raw(t *testing.T, c *net.UnixConn, text string) (*http.Response, string) {
	t.Helper()
	if text != "" {
		if _, err := io.WriteString(c, text); err != nil {
			t.Fatal(err)
		}
	}
	response, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(body)
}

const header = "POST /v1/windows HTTP/1.1\r\nHost: x\r\nContent-Length: "

func TestHalfClosedClientIsAnswered(t *testing.T) {
	s := serve(t, nil)
	c := s.dial(t)
	if _, err := io.WriteString(c, header+"16\r\n\r\n"+`{"kind":"epoch"}`); err != nil {
		t.Fatal(err)
	}
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if response, body := raw(t, c, ""); response.StatusCode != http.StatusCreated { //nolint:bodyclose // raw closes it
		t.Errorf("got %d %s, want %d", response.StatusCode, body, http.StatusCreated)
	}
}

func TestBodyThatEndsEarly(t *testing.T) {
	s := serve(t, nil)
	c := s.dial(t)
	if _, err := io.WriteString(c, header+"16\r\n\r\n"+`{"kind":`); err != nil {
		t.Fatal(err)
	}
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	response, body := raw(t, c, "") //nolint:bodyclose // raw closes it
	if response.StatusCode != http.StatusBadRequest ||
		!strings.Contains(parseAs[Error](t, body).Text, "the body ended early") {
		t.Errorf("got %d %s, want 400 and the reason", response.StatusCode, body)
	}
}

func TestSlowClients(t *testing.T) {
	s := serve(t, func(s *Server) {
		s.http.ReadTimeout, s.http.ReadHeaderTimeout = 50*time.Millisecond, 50*time.Millisecond
	})
	response, body := raw(t, s.dial(t), header+"16\r\n\r\n"+`{"kind":`) //nolint:bodyclose // raw closes it
	if response.StatusCode != http.StatusRequestTimeout ||
		!strings.Contains(parseAs[Error](t, body).Text, "did not arrive within") {
		t.Errorf("a body that never ends: got %d %s, want 408", response.StatusCode, body)
	}
	for _, begun := range []string{"", "POST /v1/win", "POST /v1/windows HTTP/1.1\r\nHost: x\r\nA: b"} {
		c := s.dial(t)
		if _, err := io.WriteString(c, begun); err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(c); len(text) > 0 && !strings.HasPrefix(string(text), "HTTP/1.1 400 ") || err != nil {
			t.Errorf("%q: got %q, %v; want a closed connection", begun, text, err)
		}
	}
}

// TestClientThatNeverReads requests more than a socket's buffers hold and does not read it.
func TestClientThatNeverReads(t *testing.T) {
	s := serve(t, func(s *Server) { s.http.WriteTimeout = 500 * time.Millisecond })
	fill(t, s, 1000)
	for range maxListings {
		c := s.dial(t)
		if _, err := io.WriteString(c, "GET /v1/windows HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		_, _ = c.Read(make([]byte, 1)) // the server has begun the response, or closed the connection
	}
	// The server closes these connections, so that other clients get a response.
	if status, _, body := s.do(t, "GET", "/v1/status", ""); status != http.StatusOK {
		t.Errorf("got %d %s, want 200", status, body)
	}
}

func TestHugeRequests(t *testing.T) {
	s, long := serve(t, nil), strings.Repeat("a", 64<<10)
	for name, c := range map[string]struct {
		request string
		status  int
	}{
		"announced":  {header + "1000000000000\r\n\r\n{", http.StatusRequestEntityTooLarge},
		"not a size": {header + "-1\r\n\r\n", http.StatusBadRequest},
		"long header": {"GET /v1/status HTTP/1.1\r\nHost: x\r\nA: " + long + "\r\n\r\n",
			http.StatusRequestHeaderFieldsTooLarge},
		"long path": {"GET /" + long + " HTTP/1.1\r\nHost: x\r\n\r\n", http.StatusRequestHeaderFieldsTooLarge},
		"not HTTP":  {"\x00\x01\x02\r\n\r\n", http.StatusBadRequest},
		"chunked": {"POST /v1/windows HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n11000\r\n" +
			strings.Repeat(" ", 0x11000) + "\r\n0\r\n\r\n", http.StatusRequestEntityTooLarge},
	} {
		conn := s.dial(t)
		go func() { _, _ = io.WriteString(conn, c.request) }()                   // the server may respond before the end
		if response, body := raw(t, conn, ""); response.StatusCode != c.status { //nolint:bodyclose // raw closes it
			t.Errorf("%s: got %d %s, want %d", name, response.StatusCode, body, c.status)
		}
	}
}

// fill opens windows without the server.
func fill(t testing.TB, s *service, n int) {
	t.Helper()
	now := s.monitor.Now()
	for range n {
		if _, err := s.monitor.Windows.Begin(window.Window{Kind: window.Custom, Name: strings.Repeat("n", 1000)},
			now); err != nil {
			t.Fatal(err)
		}
	}
}

// TestThousandWindows opens 1000 windows through the API at once, then up to the limit, and one more.
func TestThousandWindows(t *testing.T) {
	s := serve(t, nil)
	const clients, each = 20, 50
	ids := make(chan string, clients*each)
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			for i := range each {
				begun, err := s.Begin(t.Context(), Announcement{Kind: window.Epoch, Epoch: &i})
				if err != nil {
					t.Error(err)
					return
				}
				ids <- begun.ID
			}
		})
	}
	wg.Wait()
	close(ids)
	type list struct{ Running, Ended []report }
	_, _, body := s.do(t, "GET", "/v1/windows", "")
	if got := parseAs[list](t, body); len(got.Running) != clients*each {
		t.Errorf("got %d open windows, want %d", len(got.Running), clients*each)
	}

	fill(t, s, windows.MaxOpen-clients*each)
	status, _, body := s.do(t, "POST", "/v1/windows", `{"kind":"epoch"}`)
	if status != http.StatusServiceUnavailable || !strings.Contains(parseAs[Error](t, body).Text,
		"4096 windows are open: end some") {
		t.Errorf("over the limit: got %d %s, want 503", status, body)
	}
	for range clients {
		wg.Go(func() {
			for id := range ids {
				if _, err := s.End(t.Context(), id); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	_, _, body = s.do(t, "GET", "/v1/windows", "")
	if got := parseAs[list](t, body); len(got.Running) != windows.MaxOpen-clients*each || len(got.Ended) != clients*each {
		t.Errorf("got %d open and %d ended windows, want %d and %d",
			len(got.Running), len(got.Ended), windows.MaxOpen-clients*each, clients*each)
	}
}

// TestBeginAndEndAtOnce has clients begin, read and end windows at the same time, and end each twice.
func TestBeginAndEndAtOnce(t *testing.T) {
	s := serve(t, nil)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 10 {
				begun, err := s.Begin(t.Context(), Announcement{Kind: window.Custom})
				if err != nil {
					t.Error(err)
					return
				}
				s.do(t, "GET", "/v1/windows/"+begun.ID, "")
				var ends sync.WaitGroup
				won := make(chan bool, 2)
				for range 2 {
					ends.Go(func() {
						_, err := s.End(t.Context(), begun.ID)
						var refused *Error
						if err != nil && (!errors.As(err, &refused) || refused.Status != http.StatusNotFound) {
							t.Error(err)
						}
						won <- err == nil
					})
				}
				ends.Wait()
				if first, second := <-won, <-won; first == second {
					t.Errorf("%s: got two equal results %v of two ends, want one success", begun.ID, first)
				}
			}
		})
	}
	wg.Wait()
}

// TestConnectionsAreBounded takes all slots, sends a request on one more connection, and frees a slot.
func TestConnectionsAreBounded(t *testing.T) {
	s := serve(t, nil)
	silent := make([]*net.UnixConn, maxConnections)
	for i := range silent {
		silent[i] = s.dial(t)
	}
	answered := make(chan error, 1)
	go func() {
		_, err := s.Begin(t.Context(), Announcement{Kind: window.Custom})
		answered <- err
	}()
	_ = silent[0].Close()
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

func TestListener(t *testing.T) {
	inner, err := Listen(folder(t) + "/s")
	if err != nil {
		t.Fatal(err)
	}
	g := newListener(inner, 2, func(net.Conn) caller { return caller{} })
	accepted := make(chan net.Conn)
	failed := make(chan error, 1)
	go func() {
		for {
			c, err := g.Accept()
			if err != nil {
				failed <- err
				return
			}
			accepted <- c
		}
	}()
	for range 3 {
		c, err := net.Dial("unix", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
	}
	first, second := <-accepted, <-accepted
	defer func() { _ = second.Close() }()
	select {
	case <-accepted:
		t.Error("got a third connection, want 2")
	default:
	}
	if len(g.slots) != 2 {
		t.Errorf("got %d slots taken, want 2", len(g.slots))
	}
	_, _ = first.Close(), first.Close() // it gives back one slot
	third := <-accepted
	defer func() { _ = third.Close() }()
	if len(g.slots) != 2 {
		t.Errorf("got %d slots taken after the end of one, want 2", len(g.slots))
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	if err := <-failed; !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v, want %v", err, net.ErrClosed)
	}
}

// BenchmarkBeginEnd measures one window through the API: two connections, two samples of this machine, one report.
func BenchmarkBeginEnd(b *testing.B) {
	s := serve(b, nil)
	for b.Loop() {
		begun, err := s.Begin(b.Context(), Announcement{Kind: window.Custom})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := s.End(b.Context(), begun.ID); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkList measures GET /v1/windows with many open windows.
func BenchmarkList(b *testing.B) {
	for _, open := range []int{0, 1000} {
		b.Run(fmt.Sprintf("%d open", open), func(b *testing.B) {
			s := serve(b, nil)
			fill(b, s, open)
			for b.Loop() {
				s.do(b, "GET", "/v1/windows", "")
			}
		})
	}
}
