package monitor

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/cgroup"
	"github.com/stallspan/stallspan/internal/window"
)

// watching is a monitor of this machine that samples often.
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

// sleeper is a process that does nothing until the test ends, or it is told to end.
func sleeper(t *testing.T) (pid int, end func()) {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := false
	end = func() {
		if !ended {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
		ended = true
	}
	t.Cleanup(end)
	return cmd.Process.Pid, end
}

// attend is Attend without the wait between two.
func attend(m *Monitor, pid int) string {
	m.attended.mu.Lock()
	m.attended.begun = 0
	m.attended.mu.Unlock()
	return m.Attend(pid, "", false)
}

// older has a job's last span, its last process and the last look at it lie further back.
func older(m *Monitor, pid int, by time.Duration) {
	m.attended.mu.Lock()
	defer m.attended.mu.Unlock()
	j := m.attended.jobs[pid]
	j.used, j.alive, j.looked = j.used-by, j.alive-by, j.looked-by
}

func TestAttend(t *testing.T) {
	m := watching(t, Config{})
	if m.Attend(0, "", false) != "" || m.Attend(-1, "", false) != "" || m.Attend(math.MaxInt32, "", false) != "" {
		t.Error("a process that is not there is followed")
	}
	pid, _ := sleeper(t)
	job := m.Attend(pid, "", false)
	if job == "" {
		t.Fatal("not followed", m.Problems())
	}
	if again := m.Attend(pid, "", false); again != job {
		t.Errorf("then %q", again)
	}
	if other := m.Attend(os.Getpid(), "", false); other != "" {
		t.Errorf("another one at once: %q", other)
	}
	w := window.Window{Kind: window.Epoch, Job: job}
	w.Start.Wall = sample.Now().Wall
	time.Sleep(50 * time.Millisecond)
	w.End.Wall = sample.Now().Wall
	if err := m.Place(&w); err != nil {
		t.Fatal(err)
	}
	if r := m.Span(w); r.Scope != window.Process || !r.Split {
		t.Errorf("%+v", r)
	}
}

// There is room for so many jobs; one that nobody asks for gives way, and one that is asked for does not.
func TestAttendMany(t *testing.T) {
	m := watching(t, Config{})
	var pids []int
	for range mostAttended + 1 {
		pid, _ := sleeper(t)
		pids = append(pids, pid)
	}
	last := pids[mostAttended]
	for _, pid := range pids[:mostAttended] {
		if attend(m, pid) == "" {
			t.Fatal("not followed", m.Problems())
		}
	}
	if job := attend(m, last); job != "" {
		t.Errorf("one too many: %q", job)
	}
	for _, pid := range pids[:2] {
		older(m, pid, attendFor+time.Minute)
	}
	if attend(m, pids[0]) == "" { // epochs may take longer than that
		t.Error("left, though there was room")
	}
	if job := attend(m, last); job == "" || len(m.attended.jobs) != mostAttended || m.attended.jobs[pids[1]] != nil {
		t.Errorf("%q, %v", job, m.attended.jobs)
	}
}

// A job whose process has ended is kept for the spans that are on their way, and then left. Its number may be another
// process's by then.
func TestAttendDead(t *testing.T) {
	m := watching(t, Config{})
	pid, end := sleeper(t)
	job := attend(m, pid)
	end()
	time.Sleep(100 * time.Millisecond)
	older(m, pid, 2*lookAgain)
	if got := attend(m, pid); got != job || job == "" {
		t.Errorf("of its last spans: %q, want %q", got, job)
	}
	m.leaveDead()
	if len(m.attended.jobs) != 1 {
		t.Error("left at once")
	}
	older(m, pid, 2*attendDead)
	m.leaveDead()
	if len(m.attended.jobs) != 0 || m.jobs[job] != nil {
		t.Error("not left")
	}
	if now := m.Collect(); len(now.Jobs.Jobs) != 0 {
		t.Errorf("still told of: %+v", now.Jobs.Jobs)
	}

	other, _ := sleeper(t)
	job = attend(m, other)
	m.attended.mu.Lock()
	j := m.attended.jobs[other]
	j.job, j.looked = "process of yesterday", j.looked-2*lookAgain
	m.attended.mu.Unlock()
	if got := attend(m, other); got != job || m.attended.jobs[other].job != job {
		t.Errorf("of another process by that number: %q, want %q", got, job)
	}
}

// accelerators are so many, all busy for half of the time, each held by one process.
type accelerators []int

func (a accelerators) Read(out *sample.Sample) error {
	out.At = sample.Now()
	out.GPUProcessesRead = true
	for i, pid := range a {
		id := fmt.Sprintf("GPU-%d", i)
		out.GPUs = append(out.GPUs, sample.GPU{ID: id, Busy: out.At.Mono / 2})
		out.GPUProcesses = append(out.GPUProcesses, sample.GPUProcess{GPU: id, PID: pid})
	}
	return nil
}

// Eight processes, each on a GPU of its own, all have a ledger of that one.
func TestAttendRanks(t *testing.T) {
	var pids accelerators
	for range mostAttended {
		pid, _ := sleeper(t)
		pids = append(pids, pid)
	}
	m := watching(t, Config{Accelerator: pids})
	var jobs []string
	for _, pid := range pids {
		jobs = append(jobs, attend(m, pid))
	}
	time.Sleep(100 * time.Millisecond) // the driver tells who holds what; what a ledger had no room for finds it
	w := window.Window{Kind: window.Epoch}
	w.Start.Wall = sample.Now().Wall
	time.Sleep(100 * time.Millisecond)
	w.End.Wall = sample.Now().Wall
	if err := m.Place(&w); err != nil {
		t.Fatal(err)
	}
	for i, job := range jobs {
		w.Job = job
		r := m.Span(w)
		if !r.Split || r.Scope != window.Process || len(r.GPUIDs) != 1 || r.GPUIDs[0] != fmt.Sprintf("GPU-%d", i) {
			t.Errorf("rank %d: split %v, of the %s, on %v: %s", i, r.Split, r.Scope, r.GPUIDs, r.Finding)
		}
	}
}

// Where the history has no room for a job's ledger, what the whole machine's says is said.
func TestAttendWithoutRoom(t *testing.T) {
	one := []history.Tier{{Rows: 6000}}
	free := watching(t, Config{History: history.Config{Tiers: one}})
	m := watching(t, Config{History: history.Config{Tiers: one, MaxBytes: free.history.Bytes() + 100_000}})
	pid, _ := sleeper(t)
	w := window.Window{Kind: window.Epoch, Job: attend(m, pid)}
	if len(m.history.Known(history.LedgerBusy)) != 1 {
		t.Skip("the job's ledger found room")
	}
	w.Start.Wall = sample.Now().Wall
	time.Sleep(50 * time.Millisecond)
	w.End.Wall = sample.Now().Wall
	if err := m.Place(&w); err != nil {
		t.Fatal(err)
	}
	if r := m.Span(w); !r.Split || r.Scope != window.Host {
		t.Errorf("split %v, of the %s: %s", r.Split, r.Scope, r.Finding)
	}
}

// A cgroup that ended is told of once, and not at every reading for as long as its job is remembered.
func TestAttendedCgroupEnds(t *testing.T) {
	point, err := cgroup.Mountpoint("")
	if err != nil {
		t.Skipf("needs cgroup v2: %v", err)
	}
	scope := fmt.Sprintf("/stallspan-attend-test-%d", os.Getpid())
	dir := filepath.Join(point, scope)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Skipf("needs root, to make a cgroup: %v", err)
	}
	t.Cleanup(func() { _ = os.Remove(dir) })
	m := watching(t, Config{})
	pid, end := sleeper(t)
	if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), fmt.Append(nil, pid), 0o644); err != nil {
		t.Skipf("needs root, to move a process: %v", err)
	}
	if m.Attend(pid, scope, true) == "" {
		t.Fatal("not followed", m.Problems())
	}
	end()
	for i := 0; os.Remove(dir) != nil && i < 100; i++ {
		time.Sleep(10 * time.Millisecond)
	}
	before := m.Failures()["pressure"].Count
	time.Sleep(200 * time.Millisecond)
	if n := m.Failures()["pressure"]; n.Count-before > 1 || n.Last != nil && !strings.Contains(n.Last.Error(), "gone") {
		t.Errorf("%d failures: %v", n.Count-before, n.Last)
	}
}

// A window that nobody ended is closed by the sampler, also while a job begins.
func TestForgottenWindowOfAJob(t *testing.T) {
	m := watching(t, Config{})
	pid, _ := sleeper(t)
	const job = "job"
	if err := m.Follow(job, pid, "", false); err != nil {
		t.Fatal(err)
	}
	m.OnEnd(func(r *window.Report) { m.Leave(r.Job) }) // as a session does
	now := m.Now()
	now.At.Mono -= window.Longest + time.Hour
	if _, err := m.Begin(window.Window{Kind: window.Epoch, Job: job}, now); err != nil {
		t.Fatal(err)
	}
	m.mu.Lock()
	m.dueAt = 0
	m.mu.Unlock()
	done := make(chan string, 1)
	go func() { done <- m.Attend(os.Getpid(), "", false) }()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal("Attend hangs")
	}
	for i := 0; m.Open() > 0; i++ {
		if i > 1000 {
			t.Fatal("the window stays open")
		}
		time.Sleep(10 * time.Millisecond)
	}
}
