package follow_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/monitor/follow"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/cgroup"
	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/test/fixture"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// watching returns a monitor of this machine that samples often.
func watching(t *testing.T, config monitor.Config) *monitor.Monitor {
	t.Helper()
	config.Interval = 20 * time.Millisecond
	m, err := monitor.New(config)
	if err != nil {
		t.Fatal(err)
	}
	m.Start()
	t.Cleanup(m.Stop)
	return m
}

// autoFollow is AutoFollow without the minimum time between two new jobs.
func autoFollow(m *monitor.Monitor, pid int) string {
	m.Jobs.AllowNext()
	return m.Jobs.AutoFollow("", pid, "", false)
}

func TestAutoFollow(t *testing.T) {
	m := watching(t, monitor.Config{})
	for _, pid := range []int{0, -1, math.MaxInt32} {
		if got := m.Jobs.AutoFollow("", pid, "", false); got != "" {
			t.Errorf("process %d, which does not exist: got %q, want no job", pid, got)
		}
	}
	pid, _ := fixture.Sleeper(t)
	job := m.Jobs.AutoFollow("", pid, "", false)
	if job == "" {
		t.Fatal("not followed", m.Problems())
	}
	if again := m.Jobs.AutoFollow("", pid, "", false); again != job {
		t.Errorf("the second time: got %q, want %q", again, job)
	}
	if other := m.Jobs.AutoFollow("", os.Getpid(), "", false); other == "" {
		t.Error("another job at once: got none, want it followed")
	}
	w := window.Window{Kind: window.Epoch, Job: job}
	w.Start.Wall = sample.Now().Wall
	time.Sleep(50 * time.Millisecond)
	w.End.Wall = sample.Now().Wall
	if err := m.Spans.Place(&w); err != nil {
		t.Fatal(err)
	}
	if r := m.Spans.Report(w); r.Scope != window.Process || !r.Split {
		t.Errorf("got %+v, want a split of the process", r)
	}
}

// As many jobs as there may be can be added at once, and then one a second.
func TestAutoFollowOften(t *testing.T) {
	for _, start := range []time.Duration{0, time.Hour} {
		var times []time.Duration
		for i := range 200 {
			times = append(times, start+time.Duration(i+1)*100*time.Millisecond)
		}
		if got, want := follow.MayAdd(times), follow.MaxAuto+19; got != want {
			t.Errorf("20 s from %v on: got %d, want %d", start, got, want)
		}
	}
}

// A container whose cgroup has no pressure shares that of the machine: its reports are about the process.
func TestAutoFollowWithoutPressure(t *testing.T) {
	m := watching(t, monitor.Config{})
	pid, _ := fixture.Sleeper(t)
	job := m.Jobs.AutoFollow("", pid, "/stallspan-no-such-cgroup", true)
	if job == "" {
		t.Fatal("not followed", m.Problems())
	}
	id, err := m.Windows.Begin(window.Window{Kind: window.Epoch, Job: job}, m.Now())
	if err != nil {
		t.Fatal(err)
	}
	r, err := m.Windows.End(id, m.Now())
	if err != nil {
		t.Fatal(err)
	}
	if r.Scope != window.Process {
		t.Errorf("got a report about the %s, want %s", r.Scope, window.Process)
	}
}

// The number of jobs is bounded. A new job replaces one that is idle, and no other.
func TestAutoFollowMany(t *testing.T) {
	m := watching(t, monitor.Config{})
	var pids []int
	for range follow.MaxAuto + 1 {
		pid, _ := fixture.Sleeper(t)
		pids = append(pids, pid)
	}
	last := pids[follow.MaxAuto]
	for _, pid := range pids[:follow.MaxAuto] {
		if autoFollow(m, pid) == "" {
			t.Fatal("not followed", m.Problems())
		}
	}
	if job := autoFollow(m, last); job != "" {
		t.Errorf("one job too many: got %q, want none", job)
	}
	for _, pid := range pids[:2] {
		m.Jobs.Age(pid, follow.AutoIdle+time.Minute)
	}
	if autoFollow(m, pids[0]) == "" { // epochs may take longer than that
		t.Error("an idle job was unfollowed, want it kept while there is room")
	}
	if job := autoFollow(m, last); job == "" || m.Jobs.AutoCount() != follow.MaxAuto || m.Jobs.AutoJob(pids[1]) != "" {
		t.Errorf("got the job %q, %d jobs, want one in place of the first", job, m.Jobs.AutoCount())
	}
}

// One client may have all places until another needs some. Then each gets its share.
func TestAutoFollowShares(t *testing.T) {
	m := watching(t, monitor.Config{})
	follows := func(client string) (n int) {
		for range follow.MaxAuto {
			pid, _ := fixture.Sleeper(t)
			m.Jobs.AllowNext()
			if m.Jobs.AutoFollow(client, pid, "", false) != "" {
				n++
			}
		}
		return n
	}
	if got := follows("container a"); got != follow.MaxAuto {
		t.Fatalf("alone: got %d places, want all %d", got, follow.MaxAuto)
	}
	if got := follows("container b"); got != follow.MaxAuto/2 {
		t.Errorf("a second client: got %d places, want half of %d", got, follow.MaxAuto)
	}
	if got := follows("container a"); got != 0 {
		t.Errorf("the first one again: got %d more places, want none", got)
	}
	if got := follows("container c"); got != 2 {
		t.Errorf("a third client: got %d places, want 2", got)
	}
	if got := m.Jobs.AutoCount(); got != follow.MaxAuto {
		t.Errorf("got %d places in use, want %d", got, follow.MaxAuto)
	}
}

// A client whose places are taken uses up none of the turns of others.
func TestAutoFollowKeepsTurns(t *testing.T) {
	m := watching(t, monitor.Config{})
	for range 3 * follow.MaxAuto { // more than may be added at once
		pid, _ := fixture.Sleeper(t)
		if m.Jobs.AutoCount() < follow.MaxAuto {
			m.Jobs.AllowNext()
		}
		if m.Jobs.AutoFollow("container a", pid, "", false) != "" && m.Jobs.AutoCount() == follow.MaxAuto {
			m.Jobs.AllowNext()
		}
	}
	pid, _ := fixture.Sleeper(t)
	if m.Jobs.AutoFollow("container b", pid, "", false) == "" {
		t.Error("another client: got no job, want one")
	}
}

// A job without a process is kept for its last spans, and then unfollowed. Another process may have its number by then.
func TestAutoFollowDead(t *testing.T) {
	m := watching(t, monitor.Config{})
	pid, end := fixture.Sleeper(t)
	job := autoFollow(m, pid)
	end()
	time.Sleep(100 * time.Millisecond)
	m.Jobs.Age(pid, 2*follow.VerifyEvery)
	if got := autoFollow(m, pid); got != job || job == "" {
		t.Errorf("its last spans: got %q, want %q", got, job)
	}
	m.Jobs.RemoveDead()
	if m.Jobs.AutoCount() != 1 {
		t.Error("the job was unfollowed at once, want it kept for a while")
	}
	m.Jobs.Age(pid, 2*follow.AutoDead)
	m.Jobs.RemoveDead()
	if m.Jobs.AutoCount() != 0 {
		t.Error("the job is still followed, want it unfollowed")
	}
	if now := m.Collect(); len(now.Jobs.Jobs) != 0 {
		t.Errorf("got the jobs %+v, want none", now.Jobs.Jobs)
	}

	other, _ := fixture.Sleeper(t)
	job = autoFollow(m, other)
	m.Jobs.SetAutoJob(other, "process of yesterday")
	if got := autoFollow(m, other); got != job || m.Jobs.AutoJob(other) != job {
		t.Errorf("another process with that number: got %q, want %q", got, job)
	}
}

// accelerators are emulated GPUs that are busy for half of the time, each held by one process.
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

// Eight processes, each on a GPU of its own, have a ledger of that GPU.
func TestAutoFollowRanks(t *testing.T) {
	var pids accelerators
	for range follow.MaxAuto {
		pid, _ := fixture.Sleeper(t)
		pids = append(pids, pid)
	}
	m := watching(t, monitor.Config{Accelerator: pids})
	var jobs []string
	for _, pid := range pids {
		jobs = append(jobs, autoFollow(m, pid))
	}
	time.Sleep(100 * time.Millisecond) // for the readings of GPU memory
	w := window.Window{Kind: window.Epoch}
	w.Start.Wall = sample.Now().Wall
	time.Sleep(100 * time.Millisecond)
	w.End.Wall = sample.Now().Wall
	if err := m.Spans.Place(&w); err != nil {
		t.Fatal(err)
	}
	for i, job := range jobs {
		w.Job = job
		r := m.Spans.Report(w)
		if !r.Split || r.Scope != window.Process || len(r.GPUIDs) != 1 || r.GPUIDs[0] != fmt.Sprintf("GPU-%d", i) {
			t.Errorf("rank %d: split %v, of the %s, on %v: %s", i, r.Split, r.Scope, r.GPUIDs, explain.Finding(r))
		}
	}
}

// A cgroup that is gone is one problem, not one at every reading.
func TestAutoFollowedCgroupEnds(t *testing.T) {
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
	m := watching(t, monitor.Config{})
	pid, end := fixture.Sleeper(t)
	if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), fmt.Append(nil, pid), 0o644); err != nil {
		t.Skipf("needs root, to move a process: %v", err)
	}
	if m.Jobs.AutoFollow("", pid, scope, true) == "" {
		t.Fatal("not followed", m.Problems())
	}
	end()
	for i := 0; os.Remove(dir) != nil && i < 100; i++ {
		time.Sleep(10 * time.Millisecond)
	}
	before := m.Failures()["pressure"].Count
	time.Sleep(200 * time.Millisecond)
	if n := m.Failures()["pressure"]; n.Count-before > 1 || n.Last != nil && !strings.Contains(n.Last.Error(), "gone") {
		t.Errorf("got %d failures (%v), want 1", n.Count-before, n.Last)
	}
}
