package monitor

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/recording"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/state/baseline"
	"github.com/stallspan/stallspan/internal/window"
)

// epochOf is the report of an epoch from the round of readings 10 to 50, with those rounds in between that come says.
func epochOf(t *testing.T, come func(i int) bool, change func(i int, at *sample.Stamp)) *window.Report {
	t.Helper()
	m, err := New(Config{Recorded: true})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Stop()
	mark := func(mark recording.Mark) {
		t.Helper()
		if err := m.Feed(&recording.Entry{Mark: &mark}); err != nil {
			t.Fatal(err)
		}
	}
	mark(recording.Mark{Op: recording.Follow, ID: "train", Scope: "/job", OwnScope: true})
	id := ""
	for i := range 51 {
		if !come(i) {
			continue
		}
		all := round(i)
		cores := &sample.Sample{At: all[0].At, Cores: []sample.Core{
			{Name: "cpu0", User: time.Duration(i) * 50 * time.Millisecond},
		}}
		for _, s := range append(all, cores) {
			change(i, &s.At)
			feedSample(t, m, s)
		}
		mark(recording.Mark{Op: recording.Tick})
		if i == 10 {
			if id, err = m.Windows.Begin(window.Window{Kind: window.Epoch, Run: "train.py", Job: "train"}, m.Now()); err != nil {
				t.Fatal(err)
			}
		}
	}
	r, err := m.Windows.End(id, m.Now())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// While a machine is suspended the monotonic clock stands still and the wall clock leaps ahead when it wakes: the
// window is as long as the machine was awake, and nothing of it was missed.
func TestSuspended(t *testing.T) {
	r := epochOf(t, func(int) bool { return true }, func(i int, at *sample.Stamp) {
		if i > 30 {
			at.Wall = at.Wall.Add(time.Hour)
		}
	})
	near := func(got time.Duration) bool { return math.Abs(got.Seconds()-2) < 0.001 }
	if r.Duration() != 4*time.Second || !near(r.Busy) || !near(r.Storage) || r.Verdict != window.StorageBound {
		t.Errorf("%v: busy %v, storage %v: %s", r.Duration(), r.Busy, r.Storage, explain.Finding(r))
	}
	gap := r.Lacks(window.ReadingGap)
	if r.Interrupted || gap || r.Uncertainty != 0 || strings.Contains(explain.Finding(r), "suspend") ||
		!baseline.Learnable(r) {
		t.Errorf("got interrupted %v, gap %v, want neither: %s", r.Interrupted, gap, explain.Finding(r))
	}
}

// A window without readings for much of its time has no verdict, and teaches the baseline nothing.
func TestUnwatched(t *testing.T) {
	r := epochOf(t, func(i int) bool { return i < 13 || i >= 47 }, func(int, *sample.Stamp) {})
	gap := r.Lacks(window.ReadingGap)
	if r.Verdict != window.Unknown || !r.Interrupted || !gap || r.Slow ||
		!strings.Contains(explain.Finding(r), "3.5 s of it there are no readings") {
		t.Errorf("got %s, gap %v, want unknown, true: %s", r.Verdict, gap, explain.Finding(r))
	}
	if strings.Contains(explain.Finding(r), "suspend") || baseline.Learnable(r) {
		t.Errorf("learned from: %v, %s", baseline.Learnable(r), explain.Finding(r))
	}
	if key := baseline.KeyOf(r, ""); key != "first/train.py" {
		t.Errorf("without the gap nothing would be learned either: %q", key)
	}
}
