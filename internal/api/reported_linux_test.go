package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/trust"
	"github.com/stallspan/stallspan/semconv"
)

// taken are the events that a server took.
type taken struct {
	mu  sync.Mutex
	all []emit.EventJSON
}

func (n *taken) take(e emit.Event, within trace.SpanContext) {
	n.mu.Lock()
	defer n.mu.Unlock()
	e = e.Identified(within)
	n.all = append(n.all, e.ForJSON())
}

func (n *taken) events() []emit.EventJSON {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.all)
}

// slowEvent is an event of a slow window, by a program that claims to be root's.
func slowEvent() *emit.Event {
	return &emit.Event{Name: semconv.WindowSlowEvent.Name, Time: time.Now(), Body: "epoch a: slow",
		Attributes: []attribute.KeyValue{
			semconv.WindowKindKey.String("epoch"), semconv.SlownessReasonKey.String("threshold"),
			semconv.EventReporterKey.String("uid 0"),
		}}
}

func TestReported(t *testing.T) {
	var n taken
	s := serve(t, func(s *Server) { s.With(Events{Reported: n.take}) })
	if err := s.Report(t.Context(), slowEvent()); err != nil {
		t.Fatal(err)
	}
	got := n.events()
	if want := fmt.Sprint("uid ", os.Geteuid()); len(got) != 1 || got[0].Attributes["stallspan.event.reporter"] != want {
		t.Errorf("got %+v, want one event by %s", got, want)
	}
	lost := slowEvent()
	lost.Name = semconv.GPULostEvent.Name
	for what, err := range map[string]error{
		"a lost GPU":         s.Report(t.Context(), lost),
		"an empty object":    second(s.call(t.Context(), http.MethodPost, "/v1/events", json.RawMessage(`{}`))),
		"an unknown key":     second(s.call(t.Context(), http.MethodPost, "/v1/events", json.RawMessage(`{"size":"x"}`))),
		"attributes as text": second(s.call(t.Context(), http.MethodPost, "/v1/events", json.RawMessage(`{"attributes":"x"}`))),
	} {
		if refused := new(Error); !errors.As(err, &refused) || refused.Status != http.StatusBadRequest {
			t.Errorf("%s: got %v, want 400", what, err)
		}
	}
	bare := serve(t, nil)
	err := bare.Report(t.Context(), slowEvent())
	if refused := new(Error); !errors.As(err, &refused) || refused.Status != http.StatusNotFound {
		t.Errorf("a server without events: got %v, want 404", err)
	}
}

func second(_ []byte, err error) error { return err }

// reporting makes TestReporting the program of another user.
const reporting = "STALLSPAN_TEST_REPORTING"

// TestReporting is the other user's program. It reports events until it is refused.
func TestReporting(t *testing.T) {
	path := os.Getenv(reporting)
	if path == "" {
		t.Skip("the program of another user, for TestReportedByOthers")
	}
	client, n := patient(path), 0
	var err error
	for ; err == nil && n <= maxReported; n++ {
		err = client.Report(t.Context(), slowEvent())
	}
	fmt.Printf("%d, %v\n", n-1, err)
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// Another user reports as himself, and a quarter of what a minute allows.
func TestReportedByOthers(t *testing.T) {
	var n taken
	s := serve(t, func(s *Server) {
		s.With(Events{Reported: n.take})
		s.eventRate = trust.NewRate(maxReported, time.Hour) // however slow this machine is
	})
	for path, mode := range map[string]os.FileMode{s.path: 0o666, filepath.Dir(s.path): 0o755} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	got := as(t, 65534, "TestReporting", reporting, s.path, 1)
	want := fmt.Sprintf("%d, you have reported your part of %d events in a minute: wait", maxReported/4, maxReported)
	if got[0] != want {
		t.Errorf("another user: got %q, want %q", got[0], want)
	}
	for _, e := range n.events() {
		if who := e.Attributes["stallspan.event.reporter"]; who != "uid 65534" {
			t.Fatalf("another user, who claims to be root: got the reporter %v, want uid 65534", who)
		}
	}
	if err := s.Report(t.Context(), slowEvent()); err != nil {
		t.Errorf("root, afterwards: got %v, want no error", err)
	}
}

// A reporter who is not known cannot report.
func TestReportedOverTCP(t *testing.T) {
	m, err := monitor.New(monitor.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Stop()
	var n taken
	s := NewServer(m, &opener{monitor: m}, "v1").With(Events{Reported: n.take})
	body := bytes.NewReader(slowEvent().JSON())
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/events", body)
	err = s.reported(httptest.NewRecorder(), request)
	if refused := new(Error); !errors.As(err, &refused) || refused.Status != http.StatusForbidden {
		t.Errorf("got %v, want 403", err)
	}
	if got := n.events(); len(got) > 0 {
		t.Errorf("got %+v, want no event", got)
	}
}
