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

// raw sends bytes on a connection and reads the answer.
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
		t.Errorf("%d %s", response.StatusCode, body)
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
	if response.StatusCode != http.StatusBadRequest || !strings.Contains(parseAs[Error](t, body).Text, "the body ended early") {
		t.Errorf("%d %s", response.StatusCode, body)
	}
}

func TestSlowClients(t *testing.T) {
	s := serve(t, func(s *Server) {
		s.http.ReadTimeout, s.http.ReadHeaderTimeout = 50*time.Millisecond, 50*time.Millisecond
	})
	response, body := raw(t, s.dial(t), header+"16\r\n\r\n"+`{"kind":`) //nolint:bodyclose // raw closes it
	if response.StatusCode != http.StatusRequestTimeout || !strings.Contains(parseAs[Error](t, body).Text, "did not arrive whole") {
		t.Errorf("a body that never ends: %d %s", response.StatusCode, body)
	}
	for _, begun := range []string{"", "POST /v1/win", "POST /v1/windows HTTP/1.1\r\nHost: x\r\nA: b"} {
		c := s.dial(t)
		if _, err := io.WriteString(c, begun); err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(c); len(text) > 0 && !strings.HasPrefix(string(text), "HTTP/1.1 400 ") || err != nil {
			t.Errorf("%q: %q %v, want to be cut off", begun, text, err)
		}
	}
}

// TestClientThatNeverReads asks for more than a socket's buffers hold and leaves it there.
func TestClientThatNeverReads(t *testing.T) {
	s := serve(t, func(s *Server) { s.http.WriteTimeout = 500 * time.Millisecond })
	fill(t, s, 1000)
	for range mostListings {
		c := s.dial(t)
		if _, err := io.WriteString(c, "GET /v1/windows HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		_, _ = c.Read(make([]byte, 1)) // it has its turn from now on, or was cut off already
	}
	// They are cut off, so others still get their turn.
	if status, _, body := s.do(t, "GET", "/v1/status", ""); status != http.StatusOK {
		t.Errorf("%d %s", status, body)
	}
}

func TestHugeRequests(t *testing.T) {
	s := serve(t, nil)
	for name, c := range map[string]struct {
		request string
		status  int
	}{
		"announced":   {header + "1000000000000\r\n\r\n{", http.StatusRequestEntityTooLarge},
		"not a size":  {header + "-1\r\n\r\n", http.StatusBadRequest},
		"long header": {"GET /v1/status HTTP/1.1\r\nHost: x\r\nA: " + strings.Repeat("a", 64<<10) + "\r\n\r\n", http.StatusRequestHeaderFieldsTooLarge},
		"long path":   {"GET /" + strings.Repeat("a", 64<<10) + " HTTP/1.1\r\nHost: x\r\n\r\n", http.StatusRequestHeaderFieldsTooLarge},
		"not HTTP":    {"\x00\x01\x02\r\n\r\n", http.StatusBadRequest},
		"chunked":     {"POST /v1/windows HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n11000\r\n" + strings.Repeat(" ", 0x11000) + "\r\n0\r\n\r\n", http.StatusRequestEntityTooLarge},
	} {
		conn := s.dial(t)
		go func() { _, _ = io.WriteString(conn, c.request) }()                   // fails when the server has answered before the end
		if response, body := raw(t, conn, ""); response.StatusCode != c.status { //nolint:bodyclose // raw closes it
			t.Errorf("%s: %d %s", name, response.StatusCode, body)
		}
	}
}

// fill opens windows behind the server's back.
func fill(t testing.TB, s *service, n int) {
	t.Helper()
	now := s.monitor.Now()
	for range n {
		if _, err := s.monitor.Windows.Begin(window.Window{Kind: window.Custom, Name: strings.Repeat("n", 1000)}, now); err != nil {
			t.Fatal(err)
		}
	}
}

// TestThousandWindows opens a thousand through the API at once, then as many as there may be, and one more.
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
		t.Errorf("%d windows run", len(got.Running))
	}

	fill(t, s, windows.MaxOpen-clients*each)
	status, _, body := s.do(t, "POST", "/v1/windows", `{"kind":"epoch"}`)
	if status != http.StatusServiceUnavailable || !strings.Contains(parseAs[Error](t, body).Text, "4096 windows are open: end some") {
		t.Errorf("one too many: %d %s", status, body)
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
		t.Errorf("%d windows run, %d have ended", len(got.Running), len(got.Ended))
	}
}

// TestBeginAndEndAtOnce has clients begin windows, look at them and end them, each twice, all at the same time.
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
					t.Errorf("%s: ended twice, or not at all", begun.ID)
				}
			}
		})
	}
	wg.Wait()
}

// TestConnectionsAreBounded keeps every place taken, asks on one connection more, and gives one place back.
func TestConnectionsAreBounded(t *testing.T) {
	s := serve(t, nil)
	silent := make([]*net.UnixConn, mostConnections)
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

func TestGateLetsNoMoreInThanItHasPlaces(t *testing.T) {
	inner, err := Listen(folder(t) + "/s")
	if err != nil {
		t.Fatal(err)
	}
	g := newGate(inner, 2)
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
	for range 2 {
		defer func(c net.Conn) { _ = c.Close() }(<-accepted)
	}
	select {
	case <-accepted:
		t.Error("a third got in")
	default:
	}
	if len(g.places) != 2 {
		t.Errorf("%d places are taken", len(g.places))
	}
	g.leave()
	_ = (<-accepted).Close() // the third
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	if err := <-failed; !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}

// BenchmarkBeginEnd is one window through the API: two connections, two readings of this machine, one report.
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

// BenchmarkList is GET /v1/windows with many windows open.
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
