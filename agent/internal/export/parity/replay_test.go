package parity_test

import (
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/agent/internal/export"
	"github.com/stallspan/stallspan/internal/config"
	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/recording"
	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/test/fixture/tape"
)

// shown sets everything that spans can show.
var shown = config.Spans{SlowStatus: config.StatusError, Names: config.NamesIndexed}

// replay puts a recording through a monitor. Once a second of its own time it compares the metrics, and the spans of
// windows of each kind, which began when the last ones ended.
func replay(t *testing.T, path string, p *parity) {
	t.Helper()
	agent, other := emit.NewMetrics(version), emit.NewMetrics(version)
	var due, newest time.Duration
	open := map[string]*export.Open{}
	tape.Play(t, path, func(m *monitor.Monitor, e *recording.Entry) {
		if e.Sample != nil {
			newest = max(newest, e.Sample.At.Mono)
		}
		if e.Mark == nil || e.Mark.Op != recording.Tick || newest < due {
			return
		}
		due = newest + time.Second
		now := m.Now()
		for id, span := range open {
			r, err := m.Windows.End(id, now)
			if err != nil {
				t.Fatal(err)
			}
			span.End(emit.WindowSpan(r, shown))
			p.span(t, span, p.of(r.Kind), emit.WindowSpan(r, shown))
			agent.Durations.Add(r, span.Exemplar())
			other.Durations.Add(r, span.Exemplar())
		}
		snapshot := m.Collect()
		p.metrics(t, agent.Collect(snapshot.Clone()), other.Collect(snapshot))
		open = begin(t, m, now, p)
	})
}

// of is the parent of windows of a kind.
func (p *parity) of(kind window.Kind) trace.SpanContext {
	if kind == window.Epoch || kind == window.Custom {
		return p.parent
	}
	return trace.SpanContext{}
}

func begin(t *testing.T, m *monitor.Monitor, at monitor.Moment, p *parity) map[string]*export.Open {
	t.Helper()
	open := map[string]*export.Open{}
	for _, w := range []window.Window{
		{Kind: window.ModelLoad, Model: "model", Path: "/models/model.bin", Job: "train"},
		{Kind: window.Epoch, Epoch: 1, HasEpoch: true, Job: "train"},
		{Kind: window.Checkpoint, Name: "checkpoint", Attributes: map[string]string{"team": "blue"}},
		{Kind: window.Custom, Name: "custom"},
	} {
		w.Run, w.Source = "train.py", window.Announced
		span := p.exporter.Begin(emit.SpanName(&w, shown), at.At.Wall, p.of(w.Kind))
		id, err := m.Windows.Begin(w, at)
		if err != nil {
			t.Fatal(err)
		}
		open[id] = span
	}
	return open
}
