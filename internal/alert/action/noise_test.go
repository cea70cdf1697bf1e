package action

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/semconv"
)

// slowOf is the event of a slow window of a client, and lost one of the machine.
func slowOf(client string) *emit.Event {
	e := emit.Event{Name: semconv.WindowSlowEvent.Name, Client: client, Severity: emit.Warn, Body: client}
	return new(e.Identified(trace.SpanContext{}))
}

func lost() *emit.Event {
	e := emit.Event{Name: semconv.GPULostEvent.Name, Severity: emit.Error, Body: "lost"}
	return new(e.Identified(trace.SpanContext{}))
}

// log is an action that notes the bodies of events. It waits for go before each.
type log struct {
	began   chan string
	proceed chan struct{}
	failed  bool
}

func newLog() *log { return &log{began: make(chan string, 1000), proceed: make(chan struct{}, 1000)} }

func (l *log) act(_ context.Context, e *emit.Event) (string, error) {
	l.began <- e.Body
	<-l.proceed
	if l.failed {
		return "", errors.New("it is down")
	}
	return "", nil
}

// with is a runner of one action, and no program.
func with(t *testing.T, a actor) *Runner {
	t.Helper()
	r := runner(t, Config{Exec: &Exec{Command: []string{"/bin/true"}}})
	r.workers[0].actor = a
	return r
}

// Of what waits, the machine's events go first, and a client with few events does not wait for one with many.
func TestTurns(t *testing.T) {
	l := newLog()
	r := with(t, l)
	r.Post(slowOf("first"))
	<-l.began
	for range 1000 {
		r.Post(slowOf("noisy"))
	}
	for range 2 {
		r.Post(slowOf("quiet"))
	}
	r.Post(lost())
	var order []string
	for range 5 {
		l.proceed <- struct{}{}
		order = append(order, <-l.began)
	}
	if want := []string{"lost", "quiet", "quiet", "noisy", "noisy"}; !slices.Equal(order, want) {
		t.Errorf("got the order %q, want %q", order, want)
	}
	if s := r.Stats()[0]; s.Dropped != 1000+3-maxQueued {
		t.Errorf("got %+v, want %d dropped", s, 1000+3-maxQueued)
	}
	close(l.proceed)
}

// While a webhook is down, an event of the machine waits for one attempt of a client's event, and not for all six.
func TestMachineDoesNotWaitForRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLog()
		l.failed = true
		r := with(t, l)
		r.Post(slowOf("a"))
		<-l.began
		r.Post(lost())
		l.proceed <- struct{}{}
		began := time.Now()
		if got := <-l.began; got != "lost" || time.Since(began) > 0 {
			t.Errorf("got %s after %v, want the machine's event at once", got, time.Since(began))
		}
		close(l.proceed)
	})
}

// Neither tests nor a client use up the starts of a program for others.
func TestRateOfEach(t *testing.T) {
	r := runner(t, Config{Exec: &Exec{Command: []string{"/bin/true"}, PerMinute: 4}})
	for _, c := range []struct {
		e    *emit.Event
		want int // successes of ten
	}{{event(t, hot), 4}, {slowOf("noisy"), 4}, {lost(), 4}, {slowOf("quiet"), 2}, {slowOf("third"), 1}} {
		ok := 0
		for range 10 {
			o := r.Try(t.Context(), c.e)[0]
			if o.OK {
				ok++
			} else if !strings.Contains(o.Message, "limit of runs a minute") {
				t.Errorf("got %+v, want it rate limited", o)
			}
		}
		if ok != c.want {
			t.Errorf("%s of %s: got %d starts of ten, want %d", c.e.Name, c.e.Client, ok, c.want)
		}
	}
}
