package monitor

import (
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/recording"
	"github.com/stallspan/stallspan/internal/window"
)

// replayFile feeds a recording; tick is called after each round of readings.
func replayFile(t *testing.T, path string, tick func(m *Monitor)) *Monitor {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	r, err := recording.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	m, err := New(Config{Recorded: true, Boot: r.Header().Boot})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Stop)
	for {
		var e recording.Entry
		err := r.Next(&e)
		if errors.Is(err, io.EOF) {
			return m
		}
		if err != nil {
			t.Fatal(err)
		}
		if e.Mark != nil && e.Mark.Op == recording.Leave {
			continue // what was followed stays so, as in a program that goes on
		}
		if err := m.Feed(&e); err != nil {
			t.Fatal(err)
		}
		if e.Mark != nil && e.Mark.Op == recording.Tick {
			tick(m)
		}
	}
}

// A span within a window that was announced says the same of it, but for what it leaves out at the two ends, and for
// the doubt that it admits.
func TestSpanOfAnnouncedWindow(t *testing.T) {
	paths, err := filepath.Glob("../../testdata/recordings/*.gz")
	if err != nil || len(paths) == 0 {
		t.Fatal("no recordings", err)
	}
	const short = 30 * time.Millisecond // at either end
	for _, path := range paths {
		var open []string
		n := 0
		m := replayFile(t, path, func(m *Monitor) {
			if m.jobs["train"] == nil {
				return
			}
			n++
			if now := m.Now(); n%7 == 0 {
				id, err := m.Begin(window.Window{Kind: window.Epoch, Job: "train"}, now)
				if err != nil {
					t.Fatal(err)
				}
				open = append(open, id)
			} else if n%7 == 6 && len(open) > 2 {
				if _, err := m.End(open[0], now); err != nil {
					t.Fatal(err)
				}
				open = open[1:]
			}
		})
		ended := m.Ended()
		if len(ended) < 3 {
			t.Errorf("%s: %d windows", path, len(ended))
		}
		for _, exact := range ended {
			w := window.Window{Kind: exact.Kind, Job: exact.Job, GPUs: exact.GPUIDs, Source: window.FromSpan}
			w.Start.Wall, w.End.Wall = exact.Start.Wall.Add(short), exact.Start.Wall.Add(exact.Duration()-short)
			if err := m.Place(&w); err != nil {
				t.Errorf("%s: %v", path, err)
				continue
			}
			r := m.Span(w)
			if r.Scope != exact.Scope || r.Scope != window.Process {
				t.Errorf("%s: of the %s, announced of the %s", path, r.Scope, exact.Scope)
			}
			doubt := r.Uncertainty*r.GPUTime().Seconds() + exact.Uncertainty*exact.GPUTime().Seconds() + 2*short.Seconds()
			for _, part := range [][2]time.Duration{{r.Busy, exact.Busy}, {r.Storage, exact.Storage}, {r.CPU, exact.CPU}} {
				if math.Abs((part[0] - part[1]).Seconds()) > doubt {
					t.Errorf("%s: %v, announced %v, doubt %.3f s", path, part[0], part[1], doubt)
				}
			}
			t.Logf("%s, %v: busy %v (%v), storage %v (%v), uncertainty %.3f, %s (%s)", filepath.Base(path), r.Duration(),
				r.Busy, exact.Busy, r.Storage, exact.Storage, r.Uncertainty, r.Verdict, exact.Verdict)
		}
	}
}

func TestWrongSpans(t *testing.T) {
	m, err := New(Config{Recorded: true})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Stop()
	span := func(from, to time.Time) error {
		var w window.Window
		w.Kind, w.Start.Wall, w.End.Wall = window.Epoch, from, to
		err := m.Place(&w)
		if err == nil {
			m.Span(w)
		}
		return err
	}
	if err := span(dawn, dawn.Add(1)); !errors.Is(err, ErrOld) {
		t.Errorf("without a reading: %v", err)
	}
	for i := range 100 {
		for _, s := range round(i) {
			feedSample(t, m, s)
		}
		if err := m.Feed(&recording.Entry{Mark: &recording.Mark{Op: recording.Tick}}); err != nil {
			t.Fatal(err)
		}
	}
	now := dawn.Add(9900 * time.Millisecond)
	for _, test := range []struct {
		from, to time.Time
		want     error
	}{
		{now.Add(-time.Second), now, nil},
		{now, now.Add(-time.Second), ErrBackward},
		{now, now, ErrEmpty},
		{time.Time{}, time.Time{}, ErrEmpty},
		{time.Unix(0, 0), now, ErrOld},
		{now.Add(-7 * 24 * time.Hour), now, ErrOld},
		{dawn.Add(-1), now, ErrOld},
		{now.Add(-time.Second), now.Add(time.Second), ErrFuture},
		{now.Add(time.Hour), now.Add(2 * time.Hour), ErrFuture},
		{time.Unix(0, math.MinInt64), time.Unix(0, math.MaxInt64), ErrOld},
	} {
		if err := span(test.from, test.to); !errors.Is(err, test.want) {
			t.Errorf("%v to %v: %v, want %v", test.from, test.to, err, test.want)
		}
	}
}

// A span that ended a moment ago is reported on at once; many that arrive at the same time cost one reading.
func TestLately(t *testing.T) {
	m, err := New(Config{Interval: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	m.Start()
	defer m.Stop()
	time.Sleep(5 * time.Millisecond)
	end := time.Now()
	var w window.Window
	w.Kind, w.End.Wall = window.Epoch, end
	w.Start.Wall = end.Add(-4 * time.Millisecond)
	if err := m.Place(&w); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	moments := make([]Moment, 64)
	for i := range moments {
		all.Go(func() { moments[i] = m.after(w.End.Mono) })
	}
	all.Wait()
	for _, at := range moments {
		if at.edge == nil || at.edge != moments[0].edge || at.At.Wall.Before(end) {
			t.Fatalf("not the same reading for all, or one from before the end: %+v, %+v", at, moments[0])
		}
	}
	r := m.Span(w)
	if m.lately.at.edge != moments[0].edge {
		t.Error("another reading was taken")
	}
	if !r.Split || r.Scope != window.Host || r.Next != nil {
		t.Errorf("%+v", r)
	}
	if at := m.after(w.End.Mono + time.Hour); at.edge != nil {
		t.Error("a reading is taken for a moment that has not come")
	}
}
