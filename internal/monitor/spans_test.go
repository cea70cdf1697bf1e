package monitor

import (
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/recording"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/internal/windows"
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

// A span inside an announced window has the same report, except for what it leaves out at the two ends and for its
// uncertainty.
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
			if len(m.Collect().Jobs.Jobs) == 0 {
				return
			}
			n++
			if now := m.Now(); n%7 == 0 {
				id, err := m.Windows.Begin(window.Window{Kind: window.Epoch, Job: "train"}, now)
				if err != nil {
					t.Fatal(err)
				}
				open = append(open, id)
			} else if n%7 == 6 && len(open) > 2 {
				if _, err := m.Windows.End(open[0], now); err != nil {
					t.Fatal(err)
				}
				open = open[1:]
			}
		})
		ended := m.Windows.Ended()
		if len(ended) < 3 && n >= 3*7 { // a shorter one is for other tests
			t.Errorf("%s: %d windows", path, len(ended))
		}
		for _, exact := range ended {
			w := window.Window{Kind: exact.Kind, Job: exact.Job, GPUs: exact.GPUIDs, Source: window.FromSpan}
			w.Start.Wall, w.End.Wall = exact.Start.Wall.Add(short), exact.Start.Wall.Add(exact.Duration()-short)
			if err := m.Spans.Place(&w); err != nil {
				t.Errorf("%s: got %v, want a place in time", path, err)
				continue
			}
			r := m.Spans.Report(w)
			if r.Scope != exact.Scope || r.Scope != window.Process {
				t.Errorf("%s: got scope %s, want %s", path, r.Scope, exact.Scope)
			}
			doubt := r.Uncertainty*r.GPUTime().Seconds() + exact.Uncertainty*exact.GPUTime().Seconds() + 2*short.Seconds()
			for _, part := range [][2]time.Duration{{r.Busy, exact.Busy}, {r.Storage, exact.Storage}, {r.CPU, exact.CPU}} {
				if math.Abs((part[0] - part[1]).Seconds()) > doubt {
					t.Errorf("%s: got %v, want %v within %.3f s", path, part[0], part[1], doubt)
				}
			}
			t.Logf("%s, %v: busy %v (%v), storage %v (%v), uncertainty %.3f, %s (%s)", filepath.Base(path), r.Duration(),
				r.Busy, exact.Busy, r.Storage, exact.Storage, r.Uncertainty, r.Verdict, exact.Verdict)
		}
	}
}

// Spans are reported on while the machine is sampled: what names their reasons is of ledgers that change meanwhile. A
// report without their lock is a data race, for which the race detector fails this test.
func TestSpansWhileSampling(t *testing.T) {
	var reporting sync.WaitGroup
	var followed atomic.Int64
	done := make(chan struct{})
	report := func(m *Monitor) {
		for {
			select {
			case <-done:
				return
			default:
			}
			h := m.History()
			first, _ := h.First(history.LedgerBusy)
			last, _ := h.Last(history.LedgerBusy)
			w := window.Window{Kind: window.Epoch, Job: "train", Source: window.FromSpan}
			w.Start, w.End = m.readings.StampOf(max(first, last-500*time.Millisecond)), m.readings.StampOf(last)
			if r := m.Spans.Report(w); r.Job != "" && r.Evidence.Followed() {
				followed.Add(1)
			}
			time.Sleep(time.Millisecond) // without a lock, which would order what follows
		}
	}
	ticks := 0
	replayFile(t, "../../testdata/recordings/threads.jsonl.gz", func(m *Monitor) {
		feedSample(t, m, &sample.Sample{At: m.readings.Present(), Drives: []sample.Drive{{Device: "sda"}}})
		if ticks++; ticks == 4 {
			for range 4 {
				reporting.Go(func() { report(m) })
			}
		}
		time.Sleep(10 * time.Millisecond)
	})
	close(done)
	reporting.Wait()
	if followed.Load() == 0 {
		t.Error("no report has evidence of the scheduler, and the test needs some")
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
		err := m.Spans.Place(&w)
		if err == nil {
			m.Spans.Report(w)
		}
		return err
	}
	if err := span(dawn, dawn.Add(1)); !errors.Is(err, windows.ErrOld) {
		t.Errorf("without a reading: got %v, want %v", err, windows.ErrOld)
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
		{now, now.Add(-time.Second), windows.ErrBackward},
		{now, now, windows.ErrEmpty},
		{time.Time{}, time.Time{}, windows.ErrEmpty},
		{time.Unix(0, 0), now, windows.ErrOld},
		{now.Add(-7 * 24 * time.Hour), now, windows.ErrOld},
		{dawn.Add(-1), now, windows.ErrOld},
		{now.Add(-time.Second), now.Add(time.Second), windows.ErrFuture},
		{now.Add(time.Hour), now.Add(2 * time.Hour), windows.ErrFuture},
		{time.Unix(0, math.MinInt64), time.Unix(0, math.MaxInt64), windows.ErrOld},
	} {
		if err := span(test.from, test.to); !errors.Is(err, test.want) {
			t.Errorf("%v to %v: got %v, want %v", test.from, test.to, err, test.want)
		}
	}
}
