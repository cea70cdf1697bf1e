package windows_test

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
	"github.com/stallspan/stallspan/internal/windows"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// spans records what becomes of each span.
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

func (s *spans) begin(_ string, _ time.Time, parent trace.SpanContext) windows.Span {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parents = append(s.parents, parent)
	return span{s, emit.SpanContext(parent, true)}
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

// recorded returns a monitor without sources.
func recorded(t *testing.T) *monitor.Monitor {
	t.Helper()
	m, err := monitor.New(monitor.Config{Recorded: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Stop)
	return m
}

func TestClientOfARun(t *testing.T) {
	m, all := recorded(t), &spans{}
	run := emit.RootContext()
	reports := 0
	c := m.Windows.NewClient(windows.Options{
		Spans: all.begin, Durations: &emit.Durations{}, Run: "train", Job: "job", Parent: run,
		Reports: func(*window.Report) { reports++ },
	})
	for i := range 3 {
		w := window.Window{Kind: window.Epoch, Epoch: i, HasEpoch: true}
		id, own, err := c.BeginAt(w, m.Now(), trace.SpanContext{})
		if err != nil || own.SpanContext().TraceID() != run.TraceID() {
			t.Fatalf("got the span %v, %v, want one of the trace %v", own, err, run.TraceID())
		}
		r, err := c.EndAt(id, m.Now(), window.Outcome{Unfinished: i == 2})
		if err != nil || r.Job != "job" || r.Run != "train" || r.Unfinished != (i == 2) {
			t.Fatalf("got %+v, %v, want a window of the job and the run, unfinished: %v", r, err, i == 2)
		}
		if _, err := c.EndAt(id, m.Now(), window.Outcome{}); !errors.Is(err, windows.ErrUnknown) {
			t.Errorf("the second end: got %v, want %v", err, windows.ErrUnknown)
		}
	}
	if len(all.ended) != 3 || all.ended[0].Name != "epoch train" || reports != 3 || c.Open() != 0 {
		t.Errorf("got %d spans (%+v), %d reports, %d open, want 3, 3, 0", len(all.ended), all.ended, reports, c.Open())
	}
	// A window of the same monitor without a client has no span.
	id, err := m.Windows.Begin(window.Window{Kind: window.Custom}, m.Now())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Windows.End(id, m.Now()); err != nil || len(all.ended) != 3 {
		t.Errorf("got %d spans, %v, want 3", len(all.ended), err)
	}
}

func TestDrop(t *testing.T) {
	m, all := recorded(t), &spans{}
	c := m.Windows.NewClient(windows.Options{Spans: all.begin, Durations: &emit.Durations{}})
	id, _, err := c.BeginAt(window.Window{Kind: window.Custom}, m.Now(), trace.SpanContext{})
	if err != nil {
		t.Fatal(err)
	}
	m.Windows.Drop(id)
	if _, _, err := c.BeginAt(window.Window{Kind: "nonsense"}, m.Now(), trace.SpanContext{}); err == nil {
		t.Error("a window of an unknown kind began, want an error")
	}
	if all.dropped != 2 || len(all.ended) != 0 || c.Open() != 0 || m.Windows.Open() != 0 {
		t.Errorf("got %d dropped, %d ended, %d open, want 2, 0, 0", all.dropped, len(all.ended), m.Windows.Open())
	}
}

func TestAnnounced(t *testing.T) {
	const caller = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	parent, err := emit.ParseTraceparent(caller)
	if err != nil {
		t.Fatal(err)
	}
	m, all := recorded(t), &spans{}
	c := m.Windows.NewClient(windows.Options{Spans: all.begin, Durations: &emit.Durations{}})
	id, own, err := c.Begin(window.Window{Kind: window.Epoch}, parent)
	if err != nil || own[:36] != caller[:36] || own == caller {
		t.Fatalf("got %s, %v, want a child of %s", own, err, caller)
	}
	if r, err := c.End(id, window.Outcome{}, nil); err != nil || r.Source != window.Announced {
		t.Errorf("got %+v, %v, want an announced window", r, err)
	}
	for range 10 {
		if _, _, err := c.Begin(window.Window{Kind: window.ModelLoad}, trace.SpanContext{}); err != nil {
			t.Fatal(err)
		}
	}
	c.Close()
	if _, _, err := c.Begin(window.Window{Kind: window.ModelLoad}, trace.SpanContext{}); err == nil {
		t.Error("a window began after Close, want an error")
	}
	c.EndAll(m.Now(), window.Outcome{})
	if len(all.ended) != 11 || c.Open() != 0 || m.Windows.Open() != 0 {
		t.Errorf("got %d spans, %d open, want 11, 0", len(all.ended), c.Open())
	}
	for _, r := range m.Windows.Ended() {
		if want := r.Kind == window.ModelLoad; r.Unfinished != want {
			t.Errorf("%s: got unfinished %v, want %v", r.Kind, r.Unfinished, want)
		}
	}
	if !all.parents[0].IsRemote() || all.parents[1].IsValid() {
		t.Errorf("got the parents %v, want the caller's first, then none", all.parents)
	}
}

func TestAttributesOfAnEnd(t *testing.T) {
	m, all := recorded(t), &spans{}
	c := m.Windows.NewClient(windows.Options{Spans: all.begin, Durations: &emit.Durations{}, Job: "job"})
	id, _, err := c.Begin(window.Window{Kind: window.Custom, Attributes: map[string]string{"a": "1", "b": "1"}},
		trace.SpanContext{})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := c.End(id, window.Outcome{}, map[string]string{"b": "2", "c": "2"}); err != nil || len(r.Attributes) != 3 {
		t.Fatalf("got %+v, %v; want a report with three attributes", r, err)
	}
	got := map[string]string{}
	for _, kv := range all.ended[0].Attributes {
		got[string(kv.Key)] = kv.Value.AsString()
	}
	if got["a"] != "1" || got["b"] != "2" || got["c"] != "2" {
		t.Errorf("got the attributes %v on the span, want a=1, b=2 and c=2", got)
	}
	if _, err := c.End(id, window.Outcome{}, map[string]string{"d": "3"}); !errors.Is(err, windows.ErrUnknown) {
		t.Errorf("second end: got %v, want ErrUnknown", err)
	}
}
