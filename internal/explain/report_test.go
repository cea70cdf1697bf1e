package explain

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/test/windowtest"
)

func TestWithoutGPU(t *testing.T) {
	m := windowtest.New(t, false)
	w := m.Begin(window.Epoch)
	for range 20 {
		m.Step(0, 60*time.Millisecond, 40*time.Millisecond)
	}
	r := m.Report(w)
	var out map[string]any
	text, err := json.Marshal(NewReport(r))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	if _, has := out["gpu"]; has || out["process"] == nil || out["epoch"] != nil {
		t.Fatalf("JSON: got %s, want a process, no gpu and no epoch", text)
	}
	if _, has := out["stall"].(map[string]any)["cpu_s"]; has {
		t.Errorf("a CPU stall without a GPU: %s", text)
	}
}

// TestClockStep lets NTP set the clock back by an hour in the middle of a window.
func TestClockStep(t *testing.T) {
	m := windowtest.New(t, true)
	w := m.Begin(window.Epoch)
	for range 10 {
		m.Step(windowtest.Tick, 0, 0)
	}
	r := m.Report(w)
	r.End.Wall = r.End.Wall.Add(-time.Hour)
	text, err := json.Marshal(NewReport(r))
	if err != nil {
		t.Fatal(err)
	}
	var out struct {
		Start, End time.Time
		Duration   float64 `json:"duration_s"`
	}
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	if out.Duration != 1 || out.End.Sub(out.Start) != time.Second {
		t.Fatalf("JSON: got %s, want a duration of 1 s between start and end", text)
	}
}
