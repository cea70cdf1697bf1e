package monitor

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
)

// timesOf returns the rows of a GPU.
func timesOf(m *Monitor, gpu string) (rows []sample.GPUTime) {
	now := m.Collect()
	for _, r := range now.GPUTimes {
		if r.GPU == gpu {
			rows = append(rows, r)
		}
	}
	return rows
}

// waitForRow returns the first row of a job on a GPU that fulfils a condition.
func waitForRow(t *testing.T, m *Monitor, gpu string, ok func(sample.GPUTime) bool) sample.GPUTime {
	t.Helper()
	var rows []sample.GPUTime
	for range 1200 { // a minute: far more than any needs on a busy machine
		rows = timesOf(m, gpu)
		if i := slices.IndexFunc(rows, ok); i >= 0 {
			return rows[i]
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("got the rows %+v of %s, want one that fulfils the condition", rows, gpu)
	return sample.GPUTime{}
}

// A process that holds memory of a GPU is a job without being announced, and the rows of a GPU add up to its time.
func TestHolderIsAJob(t *testing.T) {
	t.Parallel()
	held := []sample.GPUProcess{{GPU: "GPU-1", PID: os.Getpid()}}
	m, err := New(Config{Interval: 20 * time.Millisecond, Jobs: true})
	if err != nil {
		t.Fatal(err)
	}
	m.sources.SetGPUs(&driver{lag: 300 * time.Millisecond, busy: half, held: held})
	m.Start()
	t.Cleanup(m.Stop)
	got := waitForRow(t, m, "GPU-1", func(r sample.GPUTime) bool { return r.Job != "" && r.Allocated > 2*time.Second })
	if want := m.Jobs.JobOf(os.Getpid()); got.Job != want || !got.Held || got.Shared {
		t.Errorf("got %+v, want a row of %q, held and not shared", got, want)
	}
	if got.Sum() != got.Allocated || got.Idle != 0 {
		t.Errorf("got the sum %v and idle %v, want %v and 0", got.Sum(), got.Idle, got.Allocated)
	}
	if share := got.Busy.Seconds() / got.Sum().Seconds(); share < 0.4 || share > 0.6 {
		t.Errorf("got the busy share %.2f, want about 0.5", share)
	}
	for _, gpu := range []string{"GPU-1", "GPU-2"} {
		first := timesOf(m, gpu)
		time.Sleep(3 * time.Second) // times grow once a second
		last := timesOf(m, gpu)
		var sum time.Duration
		for i := range last {
			sum += last[i].Sum()
		}
		for i := range first {
			sum -= first[i].Sum()
		}
		until := func(rows []sample.GPUTime) time.Duration {
			return slices.MaxFunc(rows, func(a, b sample.GPUTime) int { return int(a.Until.Mono - b.Until.Mono) }).Until.Mono
		}
		if want := until(last) - until(first); sum != want || sum == 0 {
			t.Errorf("%s: got %v more, want %v", gpu, sum, want)
		}
	}
	now := m.Collect()
	if i := slices.IndexFunc(now.JobNames, func(n sample.JobName) bool { return n.ID == got.Job }); i < 0 ||
		now.JobNames[i].PID != os.Getpid() || now.JobNames[i].Name == "" {
		t.Errorf("got the names %+v, want one of this process", now.JobNames)
	}
	if row := timesOf(m, "GPU-2"); len(row) != 1 || row[0].Job != "" || row[0].Idle > time.Microsecond {
		t.Errorf("got %+v of a GPU that no process holds and that always works, want one row of busy time", row)
	}
}

// The server of MPS holds memory for its clients, and is no job.
func TestServerOfMPSIsNoJob(t *testing.T) {
	t.Parallel()
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Skip("needs sleep")
	}
	text, err := os.ReadFile(sleep)
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "nvidia-cuda-mps-server")
	if err := os.WriteFile(program, text, 0o700); err != nil {
		t.Fatal(err)
	}
	server, client := exec.Command(program, "600"), exec.Command(sleep, "600")
	for _, c := range []*exec.Cmd{server, client} {
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Process.Kill(); _ = c.Wait() }()
	}
	m, err := New(Config{Interval: 20 * time.Millisecond, Jobs: true})
	if err != nil {
		t.Fatal(err)
	}
	m.sources.SetGPUs(&driver{lag: 300 * time.Millisecond, busy: half, held: []sample.GPUProcess{
		{GPU: "GPU-1", PID: server.Process.Pid}, {GPU: "GPU-1", PID: client.Process.Pid},
	}})
	m.Start()
	t.Cleanup(m.Stop)
	got := waitForRow(t, m, "GPU-1", func(r sample.GPUTime) bool { return r.Job != "" && r.Allocated > 2*time.Second })
	if got.Shared || got.Job != m.Jobs.JobOf(client.Process.Pid) {
		t.Errorf("got %+v, want all of the time for the client", got)
	}
}

// The growth of the counters between two collections is the ledger of a window between the same moments.
func TestCountersAgreeWithWindows(t *testing.T) {
	t.Parallel()
	m, err := New(Config{Interval: 20 * time.Millisecond, Jobs: true})
	if err != nil {
		t.Fatal(err)
	}
	m.sources.SetGPUs(&driver{lag: 300 * time.Millisecond, busy: half,
		held: []sample.GPUProcess{{GPU: "GPU-1", PID: os.Getpid()}}})
	m.Start()
	t.Cleanup(m.Stop)
	held := func(r sample.GPUTime) bool { return r.Job != "" && r.Held }
	// The counters add pieces of a second, and the parts of each are bounded by its length. On a busy machine the sources
	// are read milliseconds apart, and more than that length is left out of a piece now and then, not of each.
	for tries := 3; ; tries-- {
		first := waitForRow(t, m, "GPU-1", held)
		last := waitForRow(t, m, "GPU-1", func(r sample.GPUTime) bool {
			return held(r) && r.Until.Mono-first.Until.Mono > 2*time.Second
		})
		w := window.Window{Kind: window.Custom, Name: "x", Job: first.Job, Source: window.Announced, GPUs: []string{"GPU-1"},
			Start: first.Until, End: last.Until}
		report := m.readings.Measure(&w)
		if report.Busy < 500*time.Millisecond {
			t.Errorf("got %v busy in %v, want about half", report.Busy, last.Until.Mono-first.Until.Mono)
		}
		got := [...]time.Duration{last.Busy - first.Busy, last.Storage - first.Storage, last.CPU - first.CPU,
			last.Other - first.Other}
		want := [...]time.Duration{report.Busy, report.Storage, report.CPU, report.Other}
		same := true
		for i := range got {
			same = same && (got[i]-want[i]).Abs() <= time.Millisecond
		}
		if same {
			return
		}
		if tries == 1 {
			t.Fatalf("busy, storage, CPU and other: got %v from the counters, want %v as in the window", got, want)
		}
	}
}

// A program that is followed for a window is a job with the name, number and owner of its process.
func TestAnnouncedJobHasAName(t *testing.T) {
	m, err := New(Config{Interval: 20 * time.Millisecond, Jobs: true})
	if err != nil {
		t.Fatal(err)
	}
	m.Start()
	t.Cleanup(m.Stop)
	program := exec.Command("sleep", "600")
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = program.Process.Kill(); _ = program.Wait() })
	pid := program.Process.Pid
	job := m.Jobs.JobOf(pid)
	if err := m.Jobs.FollowFor("", job, pid); err != nil {
		t.Fatal(err)
	}
	waitForRow(t, m, "", func(r sample.GPUTime) bool { return r.Job == job })
	_, names := m.JobTimes()
	i := slices.IndexFunc(names, func(n sample.JobName) bool { return n.ID == job })
	if i < 0 || names[i].Name != "sleep" || names[i].PID != pid || names[i].User == "" {
		t.Errorf("got the names %+v, want sleep with number %d and its user", names, pid)
	}
}
