package monitor

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/baseline"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
)

// A window is compared with those before it, also while it is open; a span as well. What is slow is not learned.
func TestBaselines(t *testing.T) {
	db := filepath.Join(t.TempDir(), "baseline.db")
	m := watching(t, Config{Slow: Slow{Baseline: db, Load: time.Hour}})
	began := func() string {
		id, err := m.Begin(window.Window{Kind: window.Epoch, Run: "train"}, m.Now())
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	at := m.Now()
	for i := range 6 {
		id := began()
		r, err := m.End(id, m.Now())
		if err != nil || (r.Usual != nil) != (i >= 5) || i < 5 && r.Slow {
			t.Fatalf("%d: %+v, %v", i, r, err)
		}
	}
	id := began()
	if _, err := m.Cut(began(), m.Now()); err != nil {
		t.Fatal(err)
	}
	var r *window.Report
	for end := time.Now().Add(time.Minute); r == nil || !r.Slow && time.Now().Before(end); r = m.Report(id) {
		time.Sleep(10 * time.Millisecond)
	}
	if r.SlowReason != window.SlowBaseline || !strings.HasPrefix(r.Finding, "It took ") {
		t.Errorf("while it is open it is slow by %q: %s", r.SlowReason, r.Finding)
	}
	if r, err := m.End(id, m.Now()); err != nil || r.SlowReason != window.SlowBaseline || strings.Count(r.Finding, "It took") != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	w := window.Window{Kind: window.Epoch, Run: "train", Origin: window.FromSpan}
	w.Start.Wall, w.End.Wall = at.At.Wall, sample.Now().Wall
	if err := m.Place(&w); err != nil {
		t.Fatal(err)
	}
	if r := m.Span(w); r.SlowReason != window.SlowBaseline {
		t.Errorf("a span is slow by %q: %s", r.SlowReason, r.Finding)
	}
	m.SaveBaselines()
	all, err := baseline.List(db)
	if err != nil || len(all) != 1 || len(all[0].Took)+all[0].Slow > 8 || len(all[0].Took) > 6 || all[0].Slow < 2 {
		t.Errorf("%+v, %v", all, err)
	}
}

func TestSlowCheck(t *testing.T) {
	for says, s := range map[string]Slow{
		"": {Baseline: "/x/y.db", Factor: 1, Load: time.Second}, "absolute": {Baseline: "y.db"}, "1000": {Factor: 0.9},
		"negative": {Epoch: -1},
	} {
		if err := s.Check(); (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v", s, err)
		}
	}
}
