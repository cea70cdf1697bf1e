package action

import (
	"crypto/hmac"
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/notice"
)

var secret = []byte("0123456789abcdef0123456789abcdef")

// receiver answers requests with statuses in turn, the last one again and again.
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
			t.Errorf("the timestamp is %q", stamp)
		}
		if !hmac.Equal([]byte(q.Header.Get(SignatureHeader)), []byte(Sign(secret, stamp, body))) {
			t.Errorf("the signature is %q", q.Header.Get(SignatureHeader))
		}
		r.mu.Lock()
		status := r.statuses[min(len(r.bodies), len(r.statuses)-1)]
		r.bodies = append(r.bodies, string(body))
		r.mu.Unlock()
		if status/100 == 3 {
			w.Header().Set("Location", "http://127.0.0.1:1/elsewhere")
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "because\n<b>it can</b>")
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) got() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.bodies...)
}

// As openssl dgst -sha256 -hmac computes it.
func TestSign(t *testing.T) {
	const want = "v1=f05f2539e3ae1c49aec5f8cfdad75ef6b06480b133973ffbb7ec9e18827af177"
	if got := Sign(secret, "1700000000", []byte(`{"a":1}`)); got != want {
		t.Errorf("%s", got)
	}
}

func TestWebhook(t *testing.T) {
	r := receive(t, 204)
	n := event(t, hot)
	a := runner(t, Config{Webhook: &Webhook{URL: r.URL + "/path?token=hidden", Secret: secret}})
	o := a.Try(within(t, 10*time.Second), n)[0]
	if !o.OK || o.Says != "it answered 204 No Content" || o.Action != "webhook "+r.URL {
		t.Errorf("%+v", o)
	}
	if got := r.got(); len(got) != 1 || got[0]+"\n" != string(n.JSON()) {
		t.Errorf("%q", got)
	}
}

// What may pass is tried again, with the same event; what will not is not.
func TestWebhookTriesAgain(t *testing.T) {
	for _, c := range []struct {
		statuses []int
		tries    int
		done     uint64
	}{
		{[]int{503, 200}, 2, 1},
		{[]int{404}, 1, 0},
		{[]int{307}, 1, 0},
	} {
		r := receive(t, c.statuses...)
		a := runner(t, Config{Webhook: &Webhook{URL: r.URL, Secret: secret}})
		a.Post(event(t, hot))
		for a.Stats()[0].Done+a.Stats()[0].Failed == 0 {
			time.Sleep(10 * time.Millisecond)
		}
		if s := a.Stats()[0]; len(r.got()) != c.tries || s.Done != c.done {
			t.Errorf("%v: %d tries, %+v", c.statuses, len(r.got()), s)
		}
	}
}

func TestWebhookSays(t *testing.T) {
	r := receive(t, 500)
	a := runner(t, Config{Webhook: &Webhook{URL: r.URL, Secret: secret}})
	if o := a.Try(within(t, 10*time.Second), event(t, hot))[0]; o.OK || o.Says != "it answered 500 Internal Server Error: because <b>it can</b>" {
		t.Errorf("%+v", o)
	}
	r.Close()
	if o := a.Try(within(t, 10*time.Second), event(t, hot))[0]; o.OK || !strings.HasPrefix(o.Says, "it was not reached: ") || strings.Contains(o.Says, "/v1") {
		t.Errorf("%+v", o)
	}
}

// One that hangs ends with its timeout, and with the agent.
func TestWebhookHangs(t *testing.T) {
	over := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-over }))
	defer s.Close()
	defer close(over)
	a := runner(t, Config{Webhook: &Webhook{URL: s.URL, Secret: secret, Timeout: 200 * time.Millisecond}})
	if o := a.Try(within(t, 10*time.Second), event(t, hot))[0]; o.OK || !strings.Contains(o.Says, "it was not reached") {
		t.Errorf("%+v", o)
	}
	for range 3 {
		a.Post(event(t, hot))
	}
	began := time.Now()
	end(a, 0)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("closing took %v", took)
	}
}

// Over TLS, the certificate counts; without it, only loopback is dialled, whatever a name leads to.
func TestWebhookTLS(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer s.Close()
	s.Config.ErrorLog = nil
	h := newHook(&Webhook{URL: s.URL, Secret: secret}, "test")
	n := event(t, hot)
	if _, again, err := h.act(t.Context(), n); err == nil || !again {
		t.Error("a certificate of nobody was taken")
	}
	transport, _ := h.client.Transport.(*http.Transport)
	transport.TLSClientConfig = &tls.Config{RootCAs: s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}
	if says, _, err := h.act(t.Context(), n); err != nil || says != "it answered 200 OK" {
		t.Errorf("%q, %v", says, err)
	}
	if err := onlyLoopback("", "192.0.2.1:80", nil); err == nil {
		t.Error("another machine is dialled without TLS")
	}
}

// What waits when the agent stops is still done, once.
func TestClose(t *testing.T) {
	r := receive(t, 200)
	a := runner(t, Config{Webhook: &Webhook{URL: r.URL, Secret: secret}})
	var all []*notice.Notice
	for range 10 {
		n := event(t, hot)
		all = append(all, n)
		a.Post(n)
	}
	end(a, 20*time.Second)
	if len(r.got()) != len(all) {
		t.Errorf("%d of %d arrived", len(r.got()), len(all))
	}
}
