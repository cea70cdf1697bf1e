package windows_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/internal/windows"
)

// A span that ended a moment ago is reported on at once; many that arrive at the same time cost one reading.
func TestSpansShareReadings(t *testing.T) {
	m, err := monitor.New(monitor.Config{Interval: time.Second})
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
	if err := m.Spans.Place(&w); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	moments := make([]monitor.Moment, 64)
	for i := range moments {
		all.Go(func() { moments[i] = windows.After(m.Spans, w.End.Mono) })
	}
	all.Wait()
	for _, at := range moments {
		if at.Next() == nil || at.Next().Edge != moments[0].Next().Edge || at.At.Wall.Before(end) {
			t.Fatalf("not the same reading for all, or one from before the end: %+v, %+v", at, moments[0])
		}
	}
	r := m.Spans.Report(w)
	if at := windows.After(m.Spans, w.End.Mono); at.Next() != nil && at.Next().Edge != moments[0].Next().Edge {
		t.Error("got another reading for the report, want the same")
	}
	if !r.Split || r.Scope != window.Host || r.Next != nil {
		t.Errorf("got %+v, want a split of the host", r)
	}
	if at := windows.After(m.Spans, w.End.Mono+time.Hour); at.Next() != nil {
		t.Error("got a reading for a moment in the future, want none")
	}
}
