package monitor

import (
	"os"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/internal/windows"
	"github.com/stallspan/stallspan/test/fixture"
)

// watching returns a monitor of this machine that samples often.
func watching(t *testing.T, config Config) *Monitor {
	t.Helper()
	config.Interval = 20 * time.Millisecond
	m, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	m.Start()
	t.Cleanup(m.Stop)
	return m
}

// If the history has no room for a job's ledger, the report is about the whole machine.
func TestAttendWithoutRoom(t *testing.T) {
	one := []history.Tier{{Rows: 6000}}
	free := watching(t, Config{History: history.Config{Tiers: one}})
	m := watching(t, Config{History: history.Config{Tiers: one, MaxBytes: free.readings.History().Bytes() + 100_000}})
	// A disk may have gone between the two, and leaves room for some jobs.
	var w window.Window
	known, found := len(m.readings.History().Known(history.LedgerBusy)), true
	for i := 0; found; i++ {
		if i > 50 {
			t.Fatalf("the ledgers of %d jobs found room, want one without", i)
		}
		pid, _ := fixture.Sleeper(t)
		w = window.Window{Kind: window.Epoch, Job: m.Jobs.AutoFollow("", pid, "", false)}
		now := len(m.readings.History().Known(history.LedgerBusy))
		known, found = now, now > known
	}
	w.Start.Wall = sample.Now().Wall
	time.Sleep(50 * time.Millisecond)
	w.End.Wall = sample.Now().Wall
	if err := m.Spans.Place(&w); err != nil {
		t.Fatal(err)
	}
	if r := m.Spans.Report(w); !r.Split || r.Scope != window.Host {
		t.Errorf("split %v, of the %s: %s", r.Split, r.Scope, explain.Finding(r))
	}
}

// The sampler closes a window that its program has forgotten, also while a job is added.
func TestForgottenWindowOfAJob(t *testing.T) {
	var m *Monitor
	m = watching(t, Config{Reports: func(r *window.Report) { m.Jobs.Unfollow(r.Job) }}) // as a client does
	pid, _ := fixture.Sleeper(t)
	const job = "job"
	if err := m.Jobs.Follow(job, pid, "", false); err != nil {
		t.Fatal(err)
	}
	now := m.Now()
	now.At.Mono -= windows.MaxLength + time.Hour
	if _, err := m.Windows.Begin(window.Window{Kind: window.Epoch, Job: job}, now); err != nil {
		t.Fatal(err)
	}
	m.due.Store(0)
	done := make(chan string, 1)
	go func() { done <- m.Jobs.AutoFollow("", os.Getpid(), "", false) }()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal("AutoFollow did not return within 20 s")
	}
	for i := 0; m.Windows.Open() > 0; i++ {
		if i > 1000 {
			t.Fatal("the window is still open, want it closed")
		}
		time.Sleep(10 * time.Millisecond)
	}
}
