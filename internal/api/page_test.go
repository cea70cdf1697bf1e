package api

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/page"
	"github.com/stallspan/stallspan/internal/window"
)

// A browser gets the page, its policy, and data with the machine's curves and the windows of the caller.
func TestPage(t *testing.T) {
	s := serve(t, nil)
	status, header, body := s.do(t, "GET", "/", "", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate")
	if status != http.StatusOK || !strings.HasPrefix(header.Get("Content-Type"), "text/html") {
		t.Errorf("got %d and a %s, want a page", status, header.Get("Content-Type"))
	}
	policy := header.Get("Content-Security-Policy")
	for _, want := range []string{
		"default-src 'none'", "connect-src 'self'", "frame-ancestors 'none'", "script-src 'sha256-",
	} {
		if !strings.Contains(policy, want) {
			t.Errorf("got the policy %s, want %s in it", policy, want)
		}
	}
	if !strings.Contains(body, `data-live="/v1/page"`) {
		t.Error("got a page that does not say where its data is")
	}
	running, err := s.Begin(t.Context(), Announcement{Kind: window.Epoch})
	if err != nil {
		t.Fatal(err)
	}
	ended, err := s.Begin(t.Context(), Announcement{Kind: window.Checkpoint})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.End(t.Context(), ended.ID); err != nil {
		t.Fatal(err)
	}
	for {
		status, _, body = s.do(t, "GET", "/v1/page?seconds=60", "", "Sec-Fetch-Site", "same-origin")
		live := parseAs[page.Live](t, body)
		if status != http.StatusOK {
			t.Fatalf("got %d %s, want the data of the page", status, body)
		}
		if len(live.Curves.Panels) == 0 {
			time.Sleep(100 * time.Millisecond) // the curves wait for the drivers of GPUs
			continue
		}
		got := map[string]bool{}
		for _, w := range live.Windows {
			got[w.Report.ID] = w.Running
		}
		if len(got) != 2 || !got[running.ID] || got[ended.ID] {
			t.Errorf("got windows and whether they run: %v, want %s running, and %s", got, running.ID, ended.ID)
		}
		if live.Span != 60 || live.Curves.Step != 1 {
			t.Errorf("got a span of %v s and a step of %v s, want 60 and 1", live.Span, live.Curves.Step)
		}
		return
	}
}

// streamed reads the events of a stream until take returns false.
func streamed(t *testing.T, s *service, take func(kind, data string) bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/v1/page/live?seconds=60", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	endless := http.Client{Transport: s.http.Transport}
	response, err := endless.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	kind := ""
	for lines.Scan() {
		if name, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			kind = name
		} else if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok && !take(kind, data) {
			return
		}
	}
	t.Fatalf("the stream ended: %v", lines.Err())
}

// Each update begins where the data before it ends, and names a window until it has ended, and once after that.
func TestPageFollows(t *testing.T) {
	s := serve(t, nil)
	begun, err := s.Begin(t.Context(), Announcement{Kind: window.Epoch})
	if err != nil {
		t.Fatal(err)
	}
	now, updates, ended, after := 0.0, 0, 0, 0
	streamed(t, s, func(kind, data string) bool {
		if kind == "page" {
			now = parseAs[page.Live](t, data).Now
			return true
		}
		u := parseAs[page.Update](t, data)
		if u.Curves.Start != now || u.Now <= now {
			t.Errorf("got curves from %v to %v s, want them from %v on", u.Curves.Start, u.Now, now)
		}
		now = u.Now
		if updates++; updates == 1 {
			if _, err := s.End(t.Context(), begun.ID); err != nil {
				t.Fatal(err)
			}
		}
		for _, w := range u.Windows {
			if w.Report.ID == begun.ID && !w.Running {
				ended++
			}
		}
		if ended > 0 {
			after++
		}
		return after < 3
	})
	if ended != 1 {
		t.Errorf("got the end of the window %d times, want once", ended)
	}
}

// Who connects to a port without a token sees the machine, and no window of a user. The page itself needs no token.
func TestPageOverTCP(t *testing.T) {
	for token, want := range map[string]int{"": http.StatusOK, someToken: http.StatusUnauthorized} {
		address := serveTCP(t, token)
		for path, want := range map[string]int{"/": http.StatusOK, "/v1/page": want} {
			response, err := http.Get("http://" + address + path)
			if err != nil {
				t.Fatal(err)
			}
			_ = response.Body.Close()
			if response.StatusCode != want {
				t.Errorf("with the token %q: got %d for %s, want %d", token, response.StatusCode, path, want)
			}
		}
	}
	s := serve(t, nil)
	if _, err := s.Begin(t.Context(), Announcement{Kind: window.Epoch}); err != nil {
		t.Fatal(err)
	}
	v := &viewer{server: s.server, who: &connected{caller: caller{uid: -1, name: overTCP, tcp: true}}}
	if reports, _ := v.windows(time.Hour); len(reports) != 0 {
		t.Errorf("got %d windows of others, want none", len(reports))
	}
	if from := v.source(nil); from.Jobs == nil || from.Jobs("process 1 of 2") {
		t.Error("got the curves of a job of others, want none")
	}
}

// The bridge gives the data to who has its key, and to no one else.
func TestBridge(t *testing.T) {
	s := serve(t, nil)
	l, err := ListenLoopback("0")
	if err != nil {
		t.Fatal(err)
	}
	b := NewBridge(s.Client)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	key := "Bearer " + b.key
	for _, c := range []struct {
		method, path, host, authorization, site string
		want                                    int
	}{
		{"GET", "/", "", "", "", http.StatusOK},
		{"GET", "/v1/page", "", key, "same-origin", http.StatusOK},
		{"GET", "/v1/page", "", "", "same-origin", http.StatusUnauthorized},
		{"GET", "/v1/page", "", key + "x", "", http.StatusUnauthorized},
		{"GET", "/v1/page", "", key, "cross-site", http.StatusForbidden},
		{"GET", "/v1/page", "evil.example", key, "", http.StatusForbidden},
		{"GET", "/", "evil.example", "", "", http.StatusForbidden},
		{"GET", "/v1/jobs", "", key, "same-origin", http.StatusOK},
		{"GET", "/v1/jobs", "", "", "same-origin", http.StatusUnauthorized},
		{"GET", "/v1/page/../windows", "", key, "", http.StatusNotFound},
		{"GET", "/v1/windows", "", key, "", http.StatusNotFound},
		{"POST", "/v1/page", "", key, "", http.StatusNotFound},
		{"GET", "/v1/page?minutes=1", "", key, "", http.StatusBadRequest},
	} {
		request, err := http.NewRequestWithContext(t.Context(), c.method, "http://"+l.Addr().String()+c.path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		request.Host, request.Close = c.host, true
		for name, value := range map[string]string{"Authorization": c.authorization, "Sec-Fetch-Site": c.site} {
			if value != "" {
				request.Header.Set(name, value)
			}
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		if response.StatusCode != c.want {
			t.Errorf("%s %s from %q of %q: got %d, want %d", c.method, c.path, c.site, c.host, response.StatusCode, c.want)
		}
		if c.want == http.StatusOK && strings.HasPrefix(c.path, page.LivePath) {
			var live page.Live
			if err := json.NewDecoder(response.Body).Decode(&live); err != nil || live.Version != page.Version {
				t.Errorf("got version %d and %v, want the data of a page", live.Version, err)
			}
		}
		_ = response.Body.Close()
	}
	if _, err := ListenLoopback("0.0.0.0:0"); err == nil {
		t.Error("got a port that is open to other machines, want an error")
	}
}
