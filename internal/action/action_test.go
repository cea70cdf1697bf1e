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
	"github.com/stallspan/stallspan/internal/notice"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const hot = "stallspan.gpu.temperature.high"

// event is a notice with some attributes.
func event(t testing.TB, name string, attrs ...attribute.KeyValue) *notice.Notice {
	t.Helper()
	e, err := emit.Trial(name, time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	e.Attributes = append(e.Attributes, attrs...)
	return notice.New(e, trace.SpanContext{})
}

func runner(t testing.TB, configs ...Config) *Runner {
	t.Helper()
	r, err := New(configs, "test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { end(r, 0) })
	return r
}

func end(r *Runner, patience time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
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
		"":                            {Exec: program},
		"did you mean " + hot:         {On: []string{hot + "x"}, Exec: program},
		"either exec or webhook":      {},
		"give one of them":            {Exec: program, Webhook: &Webhook{}},
		"absolute path":               {Exec: &Exec{Command: []string{"true"}}},
		"needs a command":             {Exec: &Exec{}},
		"zero byte":                   {Exec: &Exec{Command: []string{"/bin/true", "a\x00b"}}},
		"choose one from 100ms to 1m": {Exec: &Exec{Command: []string{"/bin/true"}, Timeout: time.Hour}},
		"per_minute of exec is -1":    {Exec: &Exec{Command: []string{"/bin/true"}, PerMinute: -1}},
		"begin with https":            {Webhook: &Webhook{URL: "http://example.com/x", Secret: secret}},
		"no address":                  {Webhook: &Webhook{URL: "https://", Secret: secret}},
		"holds a password":            {Webhook: &Webhook{URL: "https://u:p@example.com", Secret: secret}},
		"has 3 bytes":                 {Webhook: &Webhook{URL: "https://example.com", Secret: []byte("abc")}},
	} {
		err := c.Check()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%+v: %v, want %q", c, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "u:p") {
			t.Errorf("the error shows a password: %v", err)
		}
	}
	for _, url := range []string{"http://localhost:1/x", "http://127.0.0.1", "http://[::1]:80/", "https://example.com"} {
		if err := (&Config{Webhook: &Webhook{URL: url, Secret: secret}}).Check(); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func TestWants(t *testing.T) {
	warn, severe := event(t, hot), event(t, "stallspan.gpu.lost")
	over := event(t, hot, attribute.Bool("stallspan.event.resolved", true))
	over.Severity, over.Was = emit.Info, emit.Warn
	for i, c := range []struct {
		config Config
		n      *notice.Notice
		want   bool
	}{
		{Config{}, warn, true},
		{Config{On: []string{hot}}, warn, true},
		{Config{On: []string{hot}}, severe, false},
		{Config{Severity: emit.Error}, warn, false},
		{Config{Severity: emit.Error}, severe, true},
		{Config{On: []string{hot}, Severity: emit.Error}, over, false}, // it was not told of the beginning
		{Config{On: []string{hot}, Severity: emit.Warn}, over, true},
	} {
		if c.config.wants(c.n) != c.want {
			t.Errorf("%d: %v", i, !c.want)
		}
	}
}

// An action that hangs holds up nobody, and what it has no room for is counted.
func TestHangs(t *testing.T) {
	r := runner(t, Config{Exec: &Exec{Command: []string{"/bin/sleep", "30"}, Timeout: time.Minute}})
	n := event(t, hot)
	const burst = 10000
	began := time.Now()
	for range burst {
		r.Post(n)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("posting took %v", took)
	}
	if s := r.Stats()[0]; s.Dropped < burst-mostWaiting-1 || s.Dropped > burst-mostWaiting {
		t.Errorf("%+v", s)
	}
	end(r, 0)
	if s := r.Stats()[0]; s.Failed == 0 || s.Failed+s.Dropped != burst {
		t.Errorf("%+v", s)
	}
}

func TestLimit(t *testing.T) {
	r := runner(t, Config{Exec: &Exec{Command: []string{"/bin/true"}, PerMinute: 3}})
	n := event(t, hot)
	var ok int
	for range 10 {
		if o := r.Try(within(t, 10*time.Second), n)[0]; o.OK {
			ok++
		} else if !strings.Contains(o.Says, "as often as it may") {
			t.Errorf("%+v", o)
		}
	}
	if s := r.Stats()[0]; ok != 3 || s.Done != 3 || s.Dropped != 7 {
		t.Errorf("%d times, %+v", ok, s)
	}
}
