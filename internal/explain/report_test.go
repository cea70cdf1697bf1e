package explain

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/ledger"
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

// TestEvidence: the JSON says what the ledger was made from, and names what is other.
func TestEvidence(t *testing.T) {
	timer := because(window.OtherTimer, "timer", 7*time.Second)
	r := idleFor(1, window.Unknown, window.Shares{Busy: 0.3, Other: 0.7}, timer)
	r.WhatIf = &window.WhatIf{NoStorage: 1}
	text, err := json.Marshal(NewReport(r))
	for _, want := range []string{`"evidence":"schedule"`, `"what_if":{"no_storage":1}`,
		`"other_reasons":[{"kind":"timer","name":"timer","time_s":7}]`} {
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("got %s (%v), want %s", text, err, want)
		}
	}
	r.Evidence, r.NoSchedule, r.WhatIf = window.FromPressure, "run it as root", nil
	text, err = json.Marshal(NewReport(r))
	for _, want := range []string{`"evidence":"pressure"`, `"no_schedule":"run it as root"`, `"other_s":7}`} {
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("got %s (%v), want %s", text, err, want)
		}
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

// TestSteps: an epoch's steps are in the JSON and in words. A part of them has no number.
func TestSteps(t *testing.T) {
	r := idleFor(1, window.Unknown, window.Shares{Busy: 1})
	if Steps(r) != "" || NewReport(r).Steps != nil {
		t.Error("a report without steps has some")
	}
	r.Steps = &ledger.Steps{Period: 318 * time.Millisecond, Count: 37, Confidence: 0.97}
	text, err := json.Marshal(NewReport(r).Steps)
	if err != nil || string(text) != `{"period_s":0.318,"count":37,"confidence":0.97}` {
		t.Errorf("got %s, %v", text, err)
	}
	if got := Steps(r); got != "A step takes 318 ms (median of 37)." {
		t.Errorf("got %q", got)
	}
	r.Steps.Count = 0
	text, _ = json.Marshal(NewReport(r).Steps) // it was possible before
	if got := Steps(r); got != "A step takes 318 ms (median)." || strings.Contains(string(text), "count") {
		t.Errorf("got %q and %s of a part", got, text)
	}
}
