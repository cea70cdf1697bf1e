package monitor

import (
	"os/exec"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
)

// A process that is followed because of its first span has a ledger of the time before, also in a replay.
func TestFirstSpanOfAProcess(t *testing.T) {
	t.Parallel()
	p := newTape(t)
	m, err := New(Config{Journal: p.w, Reports: p.add, Interval: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	m.Jobs.ExpectSpans(func(int) string { return "" })
	m.Start()
	time.Sleep(1200 * time.Millisecond) // a list of all processes
	cmd := exec.Command("sh", "-c", "while :; do :; done")
	began := sample.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = cmd.Process.Kill(), cmd.Wait() }()
	time.Sleep(2500 * time.Millisecond)
	w := window.Window{Kind: window.ModelLoad, Source: window.FromSpan}
	w.Start.Wall, w.End.Wall = began.Wall.Add(50*time.Millisecond), sample.Now().Wall
	if err := m.Spans.Place(&w); err != nil {
		t.Fatal(err)
	}
	w.Job = m.Jobs.AutoFollow("", cmd.Process.Pid, "", false)
	if r := m.Spans.Report(w); r.Scope != window.Process || !r.Split || r.Uncertainty > window.Thresholds.Doubt {
		t.Errorf("got a ledger %v of the %s, uncertainty %.2f, want one of the %s",
			r.Split, r.Scope, r.Uncertainty, window.Process)
	}
	id, err := m.Windows.Begin(window.Window{Kind: window.Epoch, Job: w.Job}, m.Now())
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond)
	if _, err := m.Windows.End(id, m.Now()); err != nil {
		t.Fatal(err)
	}
	m.Stop()
	p.replaysTheSame()
}
