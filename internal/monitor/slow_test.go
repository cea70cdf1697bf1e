package monitor

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/config"
	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/recording"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/state/baseline"
	"github.com/stallspan/stallspan/internal/window"
)

// A window is compared with those before it, also while it is open; a span as well. What is slow is not learned.
func TestBaselines(t *testing.T) {
	db := filepath.Join(t.TempDir(), "baseline.db")
	m := watching(t, Config{Slow: config.Slow{Baseline: db, Load: time.Hour}})
	began := func() string {
		id, err := m.Windows.Begin(window.Window{Kind: window.Epoch, Run: "train"}, m.Now())
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	at := m.Now()
	for i := range 7 { // the first is compared with first ones
		id := began()
		r, err := m.Windows.End(id, m.Now())
		if err != nil || (r.Baseline != nil) != (i >= 6) || i < 6 && r.Slow {
			t.Fatalf("%d: got %+v, %v, want a baseline from the seventh on", i, r, err)
		}
	}
	id := began()
	if _, err := m.Windows.Cut(began(), m.Now(), window.Outcome{Unfinished: true}); err != nil {
		t.Fatal(err)
	}
	var r *window.Report
	for end := time.Now().Add(time.Minute); r == nil || !r.Slow && time.Now().Before(end); r = m.Windows.Report(id) {
		time.Sleep(10 * time.Millisecond)
	}
	if r.SlowReason != window.SlowBaseline || !strings.HasPrefix(explain.Finding(r), "It took ") {
		t.Errorf("while it is open it is slow by %q: %s", r.SlowReason, explain.Finding(r))
	}
	r, err := m.Windows.End(id, m.Now())
	if err != nil || r.SlowReason != window.SlowBaseline || strings.Count(explain.Finding(r), "It took") != 1 {
		t.Errorf("got %+v, %v, want slow by its baseline", r, err)
	}
	w := window.Window{Kind: window.Epoch, Run: "train", Source: window.FromSpan}
	w.Start.Wall, w.End.Wall = at.At.Wall, sample.Now().Wall
	if err := m.Spans.Place(&w); err != nil {
		t.Fatal(err)
	}
	if r := m.Spans.Report(w); r.SlowReason != window.SlowBaseline {
		t.Errorf("a span is slow by %q: %s", r.SlowReason, explain.Finding(r))
	}
	m.SaveBaselines()
	all, err := baseline.List(db)
	if err != nil || len(all) != 2 || len(all[0].Durations)+all[0].Slow > 8 ||
		len(all[0].Durations) > 6 || all[0].Slow < 2 || len(all[1].Durations) != 1 {
		t.Errorf("got %+v, %v, want epochs with at most 6 durations and at least 2 slow, and one first", all, err)
	}
}

// By what windows were judged is known where they ended alone, so a recording says it, and a replay says the same.
func TestReplayOfSlowWindows(t *testing.T) {
	p := newTape(t)
	reasons := map[string]int{}
	slow := config.Slow{Baseline: filepath.Join(t.TempDir(), "baseline.db"), Load: time.Millisecond}
	m := watching(t, Config{Journal: p.w, Slow: slow, Reports: func(r *window.Report) {
		p.add(r)
		reasons[r.SlowReason]++
	}})
	begin := func(kind window.Kind) string {
		id, err := m.Windows.Begin(window.Window{Kind: kind, Run: "train"}, m.Now())
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	end := func(id string) {
		if _, err := m.Windows.End(id, m.Now()); err != nil {
			t.Fatal(err)
		}
	}
	for range 6 {
		end(begin(window.Epoch))
	}
	long := begin(window.Epoch)
	for until := time.Now().Add(time.Minute); !m.Windows.Report(long).Slow && time.Now().Before(until); {
		time.Sleep(10 * time.Millisecond)
	}
	end(long)
	load := begin(window.ModelLoad)
	time.Sleep(2 * time.Millisecond)
	end(load)
	if reasons[window.SlowBaseline] == 0 || reasons[window.SlowThreshold] != 1 {
		t.Errorf("slow by %v", reasons)
	}
	m.Stop()
	p.replaysTheSame()
}

// An epoch that began or ended with the program is neither judged by others nor learned from, and replays so. What is
// learned goes by the usual factor, whatever this program was given.
func TestLooseEpochs(t *testing.T) {
	p := newTape(t)
	db := filepath.Join(t.TempDir(), "baseline.db")
	b := baseline.Open(db, func(err error) { t.Error(err) })
	for range baseline.MinCount {
		b.Learn("epoch/train", time.Microsecond, false, time.Now())
	}
	b.Close()
	m := watching(t, Config{Journal: p.w, Slow: config.Slow{Baseline: db, Factor: 1000}, Reports: p.add})
	for _, loose := range []string{"begin", "end", ""} {
		w := window.Window{Kind: window.Epoch, Run: "train", ApproximateBounds: loose == "begin"}
		id, err := m.Windows.Begin(w, m.Now())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Millisecond) // over a thousand times what is usual
		if loose == "end" {
			m.Windows.ApproximateBounds(id)
		}
		r, err := m.Windows.End(id, m.Now())
		if err != nil || r.Slow != (loose == "") || (r.Baseline == nil) != (loose != "") {
			t.Errorf("%q: got %+v, %v, want slow %v", loose, r, err, loose == "")
		}
	}
	m.Windows.ApproximateBounds("none")
	m.SaveBaselines()
	if all, err := baseline.List(db); err != nil || len(all[0].Durations) != baseline.MinCount || all[0].Slow != 1 {
		t.Errorf("got %+v, %v, want %d durations and 1 slow", all, err, baseline.MinCount)
	}
	m.Stop()
	p.replaysTheSame()
}

// A recording from before that has none, and is judged by nothing.
func TestReplayWithoutLimits(t *testing.T) {
	var r *window.Report
	m, err := New(Config{
		Recorded: true, Slow: config.Slow{Epoch: time.Millisecond}, Reports: func(ended *window.Report) { r = ended },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Stop()
	at := sample.Stamp{Mono: time.Second, Wall: dawn}
	until := sample.Stamp{Mono: 2 * time.Second, Wall: dawn.Add(time.Second)}
	for _, mark := range []recording.Mark{
		{Op: recording.Begin, ID: "w", At: &at, Window: &recording.Window{Kind: "epoch"}},
		{Op: recording.End, ID: "w", At: &until},
	} {
		if err := m.Feed(&recording.Entry{Mark: &mark}); err != nil {
			t.Fatal(err)
		}
	}
	if r == nil || r.Slow || r.Duration() != time.Second {
		t.Errorf("got %+v, want 1 s, not slow", r)
	}
}
