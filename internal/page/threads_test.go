package page

import (
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/ledger/chain"
	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/recording"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/test/fixture/tape"
)

// threadPanel returns the panel of a job's threads in a recording, and the curves around it.
func threadPanel(t *testing.T) (*Panel, Curves) {
	t.Helper()
	var threads Threads
	m := tape.Play(t, filepath.Join("..", "..", "testdata", "recordings", "threads.jsonl.gz"),
		func(_ *monitor.Monitor, e *recording.Entry) {
			if err := threads.Write(e); err != nil {
				t.Fatal(err)
			}
		})
	start, end := span(t, m.History())
	c := NewCurves(m.History(), nil, start, end)
	threads.AddTo(&c, start)
	for i := range c.Panels {
		if strings.HasPrefix(c.Panels[i].Title, "Threads by state") {
			if i == 0 || !strings.HasPrefix(c.Panels[i-1].Title, "Where the time went") {
				t.Errorf("got the panel at place %d, want it below the ledger", i)
			}
			return &c.Panels[i], c
		}
	}
	t.Fatalf("got no panel of threads among %d", len(c.Panels))
	return nil, c
}

// TestThreadsOfARecording compares the panel with the time that the recorded threads spent on a CPU by /proc.
func TestThreadsOfARecording(t *testing.T) {
	p, c := threadPanel(t)
	if p.Title != "Threads by state: train" || len(p.Lines) < 3 || p.Lines[0].Name != "running" {
		t.Fatalf("got %+v, want the states of train", p)
	}
	running, cores := p.Lines[0].Values, Values(nil)
	for _, other := range c.Panels {
		for _, l := range other.Lines {
			if other.Title == "Cores at work" && l.Name == "train" {
				cores = l.Values
			}
		}
	}
	if len(cores) != len(running) {
		t.Fatalf("got %d points of cores and %d of threads, want as many", len(cores), len(running))
	}
	var threads, proc float64
	for i := range running {
		if !math.IsNaN(running[i]) && !math.IsNaN(cores[i]) {
			threads += running[i]
			proc += cores[i]
		}
	}
	if proc == 0 || math.Abs(threads-proc) > 0.2*proc { // without time that was stolen to fetch data
		t.Errorf("got %v thread-seconds on a CPU, want about %v, as /proc says", threads*c.Step, proc*c.Step)
	}
	if p.Lines[2].Name != "waiting for storage" || p.Lines[2].Values.top() < 0.1 {
		t.Errorf("got at most %v threads that wait for storage, want some", p.Lines[2].Values.top())
	}
}

func TestNoThreadsWithoutEvidence(t *testing.T) {
	var threads Threads
	m := tape.Play(t, filepath.Join("..", "..", "testdata", "recordings", "gpu.jsonl.gz"),
		func(_ *monitor.Monitor, e *recording.Entry) { _ = threads.Write(e) })
	start, end := span(t, m.History())
	c := NewCurves(m.History(), nil, start, end)
	before := len(c.Panels)
	if threads.AddTo(&c, start); len(c.Panels) != before {
		t.Errorf("got %d panels, want %d as before", len(c.Panels), before)
	}
	var none Curves
	threads.AddTo(&none, 0)
}

// two writes a job of two threads to t: one runs all the time, and one sleeps from 0 to 1 s, then waits for a disk.
func two(t *Threads, length time.Duration) {
	const tick = 100 * time.Millisecond
	for at := tick; at <= length; at += tick {
		s := &sample.Schedule{Until: at}
		if at == tick {
			s.Events = []sample.ThreadEvent{
				{Kind: sample.ThreadBegan, TID: 1, PID: 1, Job: "job"}, {Kind: sample.ThreadIn, TID: 1, PID: 1},
				{Kind: sample.ThreadBegan, TID: 2, PID: 1, Job: "job", Creator: 1}, {Kind: sample.ThreadIn, TID: 2, PID: 1},
				{Kind: sample.ThreadOut, TID: 2, PID: 1, State: sample.StateAsleep, Syscall: 35},
			}
		}
		if at == time.Second {
			s.Events = []sample.ThreadEvent{
				{At: at, Kind: sample.ThreadIn, TID: 2, PID: 1},
				{At: at, Kind: sample.ThreadOut, TID: 2, PID: 1, State: sample.StateBlocked, IOWait: true},
			}
		}
		_ = t.Write(&recording.Entry{Source: "schedule", Sample: &sample.Sample{Schedule: s}})
	}
}

func curvesOf(length time.Duration) Curves {
	points := int(length / (100 * time.Millisecond))
	return Curves{Step: 0.1, Panels: []Panel{{Title: "x", Lines: []Line{{Values: make(Values, points)}}}}}
}

func TestStatesOfThreads(t *testing.T) {
	var threads Threads
	two(&threads, 2*time.Second)
	c := curvesOf(2 * time.Second)
	threads.AddTo(&c, 0)
	p := c.Panels[0]
	got := map[string]Values{}
	for _, l := range p.Lines {
		got[l.Name] = l.Values
	}
	for i := 1; i < 20; i++ { // the first reading is at 0.1 s
		asleep, disk := 1.0, 0.0
		if i >= 10 {
			asleep, disk = 0, 1
		}
		for name, want := range map[string]float64{
			"running": 1, "ready": 0, "waiting for storage": disk, "asleep": asleep,
		} {
			if math.Abs(got[name][i]-want) > 1e-6 {
				t.Errorf("%.1f s: got %v threads %s, want %v", float64(i)/10, got[name][i], name, want)
			}
		}
	}
	if !math.IsNaN(got["running"][0]) {
		t.Errorf("got %v before the first reading, want nothing", got["running"][0])
	}
}

// TestLongTimeOfThreads: rows become fewer, and the totals stay.
func TestLongTimeOfThreads(t *testing.T) {
	var threads Threads
	const length = 2 * time.Hour
	two(&threads, length)
	if n := len(threads.jobs["job"].rows); n > maxThreadRows || n < maxPoints/2 {
		t.Errorf("got %d rows, want at most %d", n, maxThreadRows)
	}
	rows := threads.jobs["job"].rows
	for i := 1; i < len(rows); i++ {
		if gap := rows[i].at - rows[i-1].at; gap > 8*length/maxPoints {
			t.Fatalf("got %v between two rows at %v, want them evenly spread over %v", gap, rows[i].at, length)
		}
	}
	from, ok1 := threads.jobs["job"].at(10 * time.Second)
	to, ok2 := threads.jobs["job"].at(length - 10*time.Second)
	if got, want := to[chain.Running]-from[chain.Running], (length - 20*time.Second).Seconds(); !ok1 || !ok2 ||
		math.Abs(got-want) > 1e-6*want {
		t.Errorf("got %v s on a CPU, want %v", got, want)
	}
}

// TestFollowedAgain: a job of the same name goes on where the one before ended.
func TestFollowedAgain(t *testing.T) {
	j := &jobThreads{}
	for at, busy := range []int{0, 4, 8, 1, 5} {
		j.add(time.Duration(at+1)*time.Second, chain.Spent{chain.Running: time.Duration(busy) * time.Second})
	}
	if got, ok := j.at(5 * time.Second); !ok || got[chain.Running] != 13 {
		t.Errorf("got %v s in all, want 13", got[chain.Running])
	}
}

// TestManySleepers: a crowd that sleeps does not flatten the rest.
func TestManySleepers(t *testing.T) {
	var threads Threads
	s := &sample.Schedule{Until: 50 * time.Millisecond}
	for tid := range 50 {
		s.Events = append(s.Events,
			sample.ThreadEvent{Kind: sample.ThreadBegan, TID: tid + 3, PID: 1, Job: "job", Creator: 1},
			sample.ThreadEvent{Kind: sample.ThreadIn, TID: tid + 3},
			sample.ThreadEvent{Kind: sample.ThreadOut, TID: tid + 3, State: sample.StateAsleep})
	}
	_ = threads.Write(&recording.Entry{Source: "schedule", Sample: &sample.Sample{Schedule: s}})
	two(&threads, 2*time.Second)
	c := curvesOf(2 * time.Second)
	threads.AddTo(&c, 0)
	p := c.Panels[0]
	if len(p.Lines) != 3 || !strings.Contains(p.Note, "up to 51 at a time") {
		t.Errorf("got %d lines and the note %q, want 3 and 51 threads that are not shown", len(p.Lines), p.Note)
	}
}
