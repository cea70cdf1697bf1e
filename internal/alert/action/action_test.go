package action

import (
	"context"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"github.com/stallspan/stallspan/internal/emit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const hot = "stallspan.gpu.temperature.high"

// event returns a test event with more attributes.
func event(t testing.TB, name string, attrs ...attribute.KeyValue) *emit.Event {
	t.Helper()
	e, err := emit.NewTestEvent(name, time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	e.Attributes = append(e.Attributes, attrs...)
	return new(e.Identified(trace.SpanContext{}))
}

func runner(t testing.TB, configs ...Config) *Runner {
	t.Helper()
	r, err := New(configs, "test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeWithin(r, 0) })
	return r
}

func closeWithin(r *Runner, d time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	r.Close(ctx)
}

func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func TestCheck(t *testing.T) {
	secret := []byte("0123456789abcdef")
	program := &Exec{Command: []string{"/bin/true"}}
	for want, c := range map[string]Config{
		"":                         {Exec: program},
		"the names are ":           {On: []string{hot + "x"}, Exec: program},
		"either exec or webhook":   {},
		"give one of them":         {Exec: program, Webhook: &Webhook{}},
		"absolute path":            {Exec: &Exec{Command: []string{"true"}}},
		"needs a command":          {Exec: &Exec{}},
		"zero byte":                {Exec: &Exec{Command: []string{"/bin/true", "a\x00b"}}},
		"choose 100ms to 1m":       {Exec: &Exec{Command: []string{"/bin/true"}, Timeout: time.Hour}},
		"per_minute of exec is -1": {Exec: &Exec{Command: []string{"/bin/true"}, PerMinute: -1}},
		"must start with https":    {Webhook: &Webhook{URL: "http://example.com/x", Secret: secret}},
		"is invalid":               {Webhook: &Webhook{URL: "https://", Secret: secret}},
		"contains a password":      {Webhook: &Webhook{URL: "https://u:p@example.com", Secret: secret}},
		"has 3 bytes":              {Webhook: &Webhook{URL: "https://example.com", Secret: []byte("abc")}},
	} {
		err := c.Check()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%+v: got error %v, want %q", c, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "u:p") {
			t.Errorf("got error %v, want it without the password", err)
		}
	}
	for _, url := range []string{"http://localhost:1/x", "http://127.0.0.1", "http://[::1]:80/", "https://example.com"} {
		if err := (&Config{Webhook: &Webhook{URL: url, Secret: secret}}).Check(); err != nil {
			t.Errorf("%s: got error %v, want none", url, err)
		}
	}
}

func TestMatches(t *testing.T) {
	warn, severe := event(t, hot), event(t, "stallspan.gpu.lost")
	resolved := event(t, hot, attribute.Bool("stallspan.event.resolved", true))
	resolved.Severity, resolved.Was = emit.Info, emit.Warn
	for i, c := range []struct {
		config Config
		e      *emit.Event
		want   bool
	}{
		{Config{}, warn, true},
		{Config{On: []string{hot}}, warn, true},
		{Config{On: []string{hot}}, severe, false},
		{Config{Severity: emit.Error}, warn, false},
		{Config{Severity: emit.Error}, severe, true},
		{Config{On: []string{hot}, Severity: emit.Error}, resolved, false}, // nor was the beginning
		{Config{On: []string{hot}, Severity: emit.Warn}, resolved, true},
	} {
		if got := c.config.matches(c.e); got != c.want {
			t.Errorf("case %d: got %v, want %v", i, got, c.want)
		}
	}
}

// Posting does not wait for an action that hangs, and dropped events are counted.
func TestHangingAction(t *testing.T) {
	r := runner(t, Config{Exec: &Exec{Command: []string{"/bin/sleep", "30"}, Timeout: time.Minute}})
	e := event(t, hot)
	const burst = 10000
	began := time.Now()
	for range burst {
		r.Post(e)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("posting took %v, want at most 5s", took)
	}
	if s := r.Stats()[0]; s.Dropped < burst-maxQueued-1 || s.Dropped > burst-maxQueued {
		t.Errorf("got %+v, want %d dropped, or one less", s, burst-maxQueued)
	}
	closeWithin(r, 0)
	if s := r.Stats()[0]; s.Failed == 0 || s.Failed+s.Dropped != burst {
		t.Errorf("closed: got %+v, want %d failed or dropped", s, burst)
	}
}

func TestRateLimit(t *testing.T) {
	r := runner(t, Config{Exec: &Exec{Command: []string{"/bin/true"}, PerMinute: 3}})
	e := event(t, hot)
	var ok int
	for range 10 {
		if o := r.Try(within(t, 10*time.Second), e)[0]; o.OK {
			ok++
		} else if !strings.Contains(o.Message, "limit of runs a minute") {
			t.Errorf("got %+v, want it rate limited", o)
		}
	}
	if s := r.Stats()[0]; ok != 3 || s.Succeeded != 3 || s.Dropped != 7 {
		t.Errorf("got %d outcomes that are ok and %+v, want 3, and 7 dropped", ok, s)
	}
}

type broken struct{}

func (broken) act(context.Context, *emit.Event) (string, error) { panic("for the test") }

// An action that panics has failed, and the next event finds its worker.
func TestPanicOfAnAction(t *testing.T) {
	r := runner(t, Config{Exec: &Exec{Command: []string{"/bin/true"}}})
	works := r.workers[0].actor
	for _, actor := range []actor{broken{}, works} {
		r.workers[0].actor = actor
		_, isBroken := actor.(broken)
		if got := r.Try(t.Context(), event(t, "stallspan.disk.saturated")); len(got) != 1 || got[0].OK == isBroken {
			t.Errorf("got %+v, want success %v", got, !isBroken)
		}
	}
}
