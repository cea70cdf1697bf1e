package action

import (
	"crypto/hmac"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v5"
)

var secret = []byte("0123456789abcdef0123456789abcdef")

// receiver responds with each of the statuses, then with the last one.
type receiver struct {
	*httptest.Server
	statuses []int

	mu     sync.Mutex
	bodies []string
}

func receive(t *testing.T, statuses ...int) *receiver {
	r := &receiver{statuses: statuses}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		if err != nil {
			t.Error(err)
		}
		stamp := q.Header.Get(TimestampHeader)
		seconds, err := strconv.ParseInt(stamp, 10, 64)
		if err != nil || time.Since(time.Unix(seconds, 0)).Abs() > time.Minute {
			t.Errorf("got timestamp %q, want the current time", stamp)
		}
		if !hmac.Equal([]byte(q.Header.Get(SignatureHeader)), []byte(Sign(secret, stamp, body))) {
			t.Errorf("got signature %q, want %q", q.Header.Get(SignatureHeader), Sign(secret, stamp, body))
		}
		r.mu.Lock()
		status := r.statuses[min(len(r.bodies), len(r.statuses)-1)]
		r.bodies = append(r.bodies, string(body))
		r.mu.Unlock()
		if status/100 == 3 {
			w.Header().Set("Location", "http://127.0.0.1:1/elsewhere")
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "some\n<b>reason</b>")
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) got() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.bodies...)
}

// The signature is the one of openssl dgst -sha256 -hmac.
func TestSign(t *testing.T) {
	const want = "v1=f05f2539e3ae1c49aec5f8cfdad75ef6b06480b133973ffbb7ec9e18827af177"
	if got := Sign(secret, "1700000000", []byte(`{"a":1}`)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestWebhook(t *testing.T) {
	r := receive(t, 204)
	e := event(t, hot)
	a := runner(t, Config{Webhook: &Webhook{URL: r.URL + "/path?token=hidden", Secret: secret}})
	o := a.Try(within(t, 10*time.Second), e)[0]
	if !o.OK || o.Message != "HTTP status 204 No Content" || o.Action != "webhook "+r.URL {
		t.Errorf("got %+v, want status 204 of webhook %s", o, r.URL)
	}
	if got := r.got(); len(got) != 1 || got[0]+"\n" != string(e.JSON()) {
		t.Errorf("got requests %q, want one with %s", got, e.JSON())
	}
}

// Temporary errors are retried.
func TestWebhookRetries(t *testing.T) {
	for _, c := range []struct {
		statuses []int
		tries    int
		ok       uint64
	}{
		{[]int{503, 200}, 2, 1},
		{[]int{404}, 1, 0},
		{[]int{307}, 1, 0},
	} {
		r := receive(t, c.statuses...)
		a := runner(t, Config{Webhook: &Webhook{URL: r.URL, Secret: secret}})
		a.Post(event(t, hot))
		for a.Stats()[0].Succeeded+a.Stats()[0].Failed == 0 {
			time.Sleep(10 * time.Millisecond)
		}
		if s := a.Stats()[0]; len(r.got()) != c.tries || s.Succeeded != c.ok {
			t.Errorf("%v: got %d tries and %+v, want %d tries, %d succeeded", c.statuses, len(r.got()), s, c.tries, c.ok)
		}
	}
}

func TestWebhookFails(t *testing.T) {
	r := receive(t, 500)
	a := runner(t, Config{Webhook: &Webhook{URL: r.URL, Secret: secret}})
	o := a.Try(within(t, 10*time.Second), event(t, hot))[0]
	if want := "HTTP status 500 Internal Server Error: some <b>reason</b>"; o.OK || o.Message != want {
		t.Errorf("got %+v, want the failure %q", o, want)
	}
	r.Close()
	o = a.Try(within(t, 10*time.Second), event(t, hot))[0]
	if o.OK || !strings.HasPrefix(o.Message, "not reached: ") || strings.Contains(o.Message, "/v1") {
		t.Errorf("closed: got %+v, want the failure not reached", o)
	}
}

// A webhook that hangs ends with its timeout, and when the agent stops.
func TestWebhookHangs(t *testing.T) {
	done := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-done }))
	defer s.Close()
	defer close(done)
	a := runner(t, Config{Webhook: &Webhook{URL: s.URL, Secret: secret, Timeout: 200 * time.Millisecond}})
	if o := a.Try(within(t, 10*time.Second), event(t, hot))[0]; o.OK || !strings.Contains(o.Message, "not reached") {
		t.Errorf("got %+v, want the failure not reached", o)
	}
	for range 3 {
		a.Post(event(t, hot))
	}
	began := time.Now()
	closeWithin(a, 0)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("closing took %v, want at most 5s", took)
	}
}

// With TLS the certificate is verified; without it, only loopback addresses are dialed.
func TestWebhookTLS(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer s.Close()
	s.Config.ErrorLog = nil
	w := newWebhook(&Webhook{URL: s.URL, Secret: secret}, "test")
	e := event(t, hot)
	var permanent *backoff.PermanentError
	if _, err := w.act(t.Context(), e); err == nil || errors.As(err, &permanent) {
		t.Errorf("unknown certificate: got error %v, want one that is retried", err)
	}
	transport, _ := w.client.Transport.(*http.Transport)
	transport.TLSClientConfig = &tls.Config{RootCAs: s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}
	if message, err := w.act(t.Context(), e); err != nil || message != "HTTP status 200 OK" {
		t.Errorf("got %q, %v, want status 200", message, err)
	}
	if err := loopbackOnly("", "192.0.2.1:80", nil); err == nil {
		t.Error("got no error for another machine without TLS, want one")
	}
}

// Queued events are sent once when the agent stops.
func TestClose(t *testing.T) {
	r := receive(t, 200)
	a := runner(t, Config{Webhook: &Webhook{URL: r.URL, Secret: secret}})
	const all = 10
	for range all {
		a.Post(event(t, hot))
	}
	closeWithin(a, 20*time.Second)
	if got := len(r.got()); got != all {
		t.Errorf("got %d requests, want %d", got, all)
	}
}
