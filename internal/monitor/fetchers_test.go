package monitor

import (
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/readers"
	"github.com/stallspan/stallspan/internal/window"
)

// What processes read is told of a load only where they were looked at when it began and when it ended.
func TestFetchersAreOfTheLoad(t *testing.T) {
	const second, ms = time.Second, time.Millisecond
	done := make(chan struct{})
	close(done)
	look := func(began, ended time.Duration, bytes uint64) *scan {
		return &scan{began: began, ended: ended, done: done, totals: readers.Totals{1: {Bytes: bytes}}}
	}
	for name, c := range map[string]struct {
		from, to           time.Duration // of the load; the present moment is 0
		began, ended       time.Duration // of the look at its beginning
		endBegan, endEnded time.Duration // and at its end
		want               bool
	}{
		"at both ends":                           {-2 * second, 0, -2 * second, -2*second + 50*ms, 0, 50 * ms, true},
		"half a second before the load":          {-2 * second, 0, -2500 * ms, -2450 * ms, 0, 0, false},
		"and of a long one":                      {-20 * second, 0, -20500 * ms, -20450 * ms, 0, 0, true},
		"half a second before its end":           {-2 * second, 0, -2 * second, -2 * second, -500 * ms, -450 * ms, false},
		"a short one":                            {-300 * ms, 0, -320 * ms, -310 * ms, -50 * ms, 10 * ms, true},
		"a little at each, and together too far": {-300 * ms, 0, -360 * ms, -300 * ms, -60 * ms, 0, false},
		"one that took long":                     {-2 * second, 0, -2 * second, -1700 * ms, 0, 0, false},
	} {
		m, err := New(Config{Recorded: true})
		if err != nil {
			t.Fatal(err)
		}
		now := sample.Now().Mono
		m.scans.open = map[string]opened{"w": {look(now+c.began, now+c.ended, 5), now + c.from}}
		m.scans.last = look(now+c.endBegan, now+c.endEnded, 7)
		list := m.fetchers("w", Moment{At: sample.Stamp{Mono: now + c.to}})
		if got := len(list) == 1 && list[0].PID == 1 && list[0].Bytes == 2; got != c.want || !c.want && list != nil {
			t.Errorf("%s: %+v", name, list)
		}
		m.Stop()
	}
}

// A window that is refused, for its id is taken, leaves what is watched for the other one alone.
func TestRefusedBeginLeavesTheOther(t *testing.T) {
	m := watching(t, Config{})
	w := window.Window{ID: "same", Kind: window.ModelLoad}
	if _, err := m.Begin(w, m.Now()); err != nil {
		t.Fatal(err)
	}
	was := m.scans.open["same"]
	m.scans.last = nil // as after a second
	if _, err := m.Begin(w, m.Now()); err == nil {
		t.Fatal("an id was taken twice")
	}
	if is := m.scans.open["same"]; is != was || is.scan == nil {
		t.Errorf("was %+v, is %+v", was, is)
	}
	m.Drop("same")
	if len(m.scans.open) != 0 {
		t.Errorf("%d loads are still watched", len(m.scans.open))
	}
}
