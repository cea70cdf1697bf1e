package session

import (
	"errors"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/window"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// spans notes what becomes of each span.
type spans struct {
	mu      sync.Mutex
	ended   []emit.Span
	dropped int
	parents []trace.SpanContext
}

type span struct {
	all *spans
	own trace.SpanContext
}

func (s *spans) begin(_ string, _ time.Time, parent trace.SpanContext) Span {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parents = append(s.parents, parent)
	return span{s, Child(parent)}
}

func (s span) SpanContext() trace.SpanContext { return s.own }
func (s span) Exemplar() trace.SpanContext    { return s.own }

func (s span) Drop() {
	s.all.mu.Lock()
	defer s.all.mu.Unlock()
	s.all.dropped++
}

func (s span) End(x emit.Span) {
	s.all.mu.Lock()
	defer s.all.mu.Unlock()
	s.all.ended = append(s.all.ended, x)
}

// recorded is a monitor that watches nothing.
func recorded(t *testing.T) *monitor.Monitor {
	t.Helper()
	m, err := monitor.New(monitor.Config{Recorded: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Stop)
	return m
}

func TestWindowsOfARun(t *testing.T) {
	m, all := recorded(t), &spans{}
	run := Root()
	s := New(m, Options{Spans: all.begin, Durations: &emit.Durations{}, Run: "train", Job: "job", Parent: run, Keep: 2})
	for i := range 3 {
		id, own, err := s.BeginAt(window.Window{Kind: window.Epoch, Epoch: i, HasEpoch: true}, s.Now(), trace.SpanContext{})
		if err != nil || own.SpanContext().TraceID() != run.TraceID() {
			t.Fatalf("%v, %v", own, err)
		}
		r, err := s.EndAt(id, s.Now(), i == 2)
		if err != nil || r.Job != "job" || r.Run != "train" || r.Unfinished != (i == 2) {
			t.Fatalf("%+v, %v", r, err)
		}
		if _, err := s.EndAt(id, s.Now(), false); !errors.Is(err, window.ErrUnknown) {
			t.Errorf("ended twice: %v", err)
		}
	}
	if len(all.ended) != 3 || all.ended[0].Name != "epoch train" || len(s.Timeline()) != 2 || s.Left() != 1 || s.Open() != 0 {
		t.Errorf("%d spans, %d reports, %d left, %d open", len(all.ended), len(s.Timeline()), s.Left(), s.Open())
	}
	// A window of the same monitor that is not the session's leaves it alone.
	id, err := m.Begin(window.Window{Kind: window.Custom}, m.Now())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.End(id, m.Now()); err != nil || len(all.ended) != 3 {
		t.Errorf("%d spans, %v", len(all.ended), err)
	}
}

func TestDrop(t *testing.T) {
	m, all := recorded(t), &spans{}
	s := New(m, Options{Spans: all.begin, Durations: &emit.Durations{}})
	id, _, err := s.BeginAt(window.Window{Kind: window.Custom}, s.Now(), trace.SpanContext{})
	if err != nil {
		t.Fatal(err)
	}
	s.Drop(id)
	if _, _, err := s.BeginAt(window.Window{Kind: "nonsense"}, s.Now(), trace.SpanContext{}); err == nil {
		t.Error("a window of no kind")
	}
	if all.dropped != 2 || len(all.ended) != 0 || s.Open() != 0 || m.Open() != 0 {
		t.Errorf("%d dropped, %d ended, %d open", all.dropped, len(all.ended), s.Open())
	}
}

func TestAnnounced(t *testing.T) {
	const caller = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	m, all := recorded(t), &spans{}
	s := New(m, Options{Spans: all.begin, Durations: &emit.Durations{}})
	if _, _, err := s.Begin(window.Window{Kind: window.Epoch}, "nonsense"); err == nil {
		t.Error("a traceparent that is none")
	}
	id, own, err := s.Begin(window.Window{Kind: window.Epoch}, caller)
	if err != nil || own[:36] != caller[:36] || own == caller {
		t.Fatalf("%s, %v", own, err)
	}
	if r, err := s.End(id, false); err != nil || r.Source != window.Announced {
		t.Errorf("%+v, %v", r, err)
	}
	for range 10 {
		if _, _, err := s.Begin(window.Window{Kind: window.ModelLoad}, ""); err != nil {
			t.Fatal(err)
		}
	}
	s.Close()
	if _, _, err := s.Begin(window.Window{Kind: window.ModelLoad}, ""); !errors.Is(err, errOver) {
		t.Errorf("begun after the end: %v", err)
	}
	s.EndAll(s.Now())
	if len(all.ended) != 11 || s.Open() != 0 || m.Open() != 0 {
		t.Errorf("%d spans, %d open", len(all.ended), s.Open())
	}
	for _, r := range m.Ended() {
		if r.Unfinished != (r.Kind == window.ModelLoad) {
			t.Errorf("%+v", r)
		}
	}
	if !all.parents[0].IsRemote() || all.parents[1].IsValid() {
		t.Error(all.parents)
	}
}

func TestChild(t *testing.T) {
	root := Child(trace.SpanContext{})
	if !root.IsValid() || !root.IsSampled() || root.IsRemote() {
		t.Error(root)
	}
	state, err := trace.ParseTraceState("vendor=1")
	if err != nil {
		t.Fatal(err)
	}
	parent := root.WithRemote(true).WithTraceFlags(0).WithTraceState(state)
	child := Child(parent)
	if child.TraceID() != parent.TraceID() || child.SpanID() == parent.SpanID() || !child.IsValid() || child.IsSampled() ||
		child.IsRemote() || child.TraceState().String() != "vendor=1" {
		t.Error(child)
	}
}
