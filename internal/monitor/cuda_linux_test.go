package monitor

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// grown is a GPU on which a process begins to hold memory.
type grown struct {
	mu   sync.Mutex
	held []sample.GPUProcess
}

func (g *grown) hold(pid int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.held = []sample.GPUProcess{{GPU: "GPU-1", PID: pid}}
}

func (g *grown) Run(ctx context.Context, sink sample.Sink) {
	for ctx.Err() == nil {
		now := sample.Now()
		g.mu.Lock()
		sink("gpu", &sample.Sample{At: now, GPUs: []sample.GPU{{ID: "GPU-1", Busy: now.Mono / 4}},
			GPUProcesses: g.held, GPUProcessesRead: true}, nil)
		g.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (g *grown) CatchUp(context.Context) {}

// opener starts a process that has a device open, and returns how to end it.
func opener(t *testing.T) (pid int, end func()) {
	t.Helper()
	device, err := os.Open("/dev/full")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = device.Close() }()
	c := exec.Command("sleep", "300")
	c.ExtraFiles = []*os.File{device}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	end = sync.OnceFunc(func() { _ = c.Process.Kill(); _ = c.Wait() })
	t.Cleanup(end)
	return c.Process.Pid, end
}

// A process that has the device of CUDA open is a job without a GPU. It is the same job when it holds memory, and its
// time is that of its GPU from then on.
func TestUserOfCUDAIsAJob(t *testing.T) {
	m, err := New(Config{Interval: 20 * time.Millisecond, Jobs: true, Device: "/dev/full"})
	if err != nil {
		t.Fatal(err)
	}
	gpu := &grown{}
	m.sources.SetGPUs(gpu)
	m.Start()
	t.Cleanup(m.Stop)
	pid, end := opener(t)
	job := m.Jobs.JobOf(pid)
	own := func(r sample.GPUTime) bool { return r.Job == job && r.Held && r.Sum() > time.Second }
	got := waitForRow(t, m, "", own)
	if got.Allocated != 0 || got.Busy != 0 {
		t.Errorf("got %+v, want no time of a GPU", got)
	}
	for _, r := range timesOf(m, "GPU-1") {
		if r.Job != "" {
			t.Errorf("got %+v of the GPU that it does not hold, want none", r)
		}
	}
	_, names := m.JobTimes()
	i := slices.IndexFunc(names, func(n sample.JobName) bool { return n.ID == job })
	if i < 0 || names[i].Name != "sleep" {
		t.Errorf("got the names %+v, want one of sleep", names)
	}

	gpu.hold(pid)
	waitForRow(t, m, "GPU-1", own)
	before := waitForRow(t, m, "", func(r sample.GPUTime) bool { return r.Job == job && !r.Held })
	time.Sleep(2 * time.Second)
	after := waitForRow(t, m, "", func(r sample.GPUTime) bool { return r.Job == job })
	if before.Sum() != after.Sum() {
		t.Errorf("got %v more of time without a GPU, want none", after.Sum()-before.Sum())
	}
	of := slices.DeleteFunc(m.Collect().Jobs.Processes, func(p sample.Process) bool { return p.PID != pid })
	if len(of) != 1 || of[0].Job != job {
		t.Errorf("got its process in %+v, want only %s", of, job)
	}

	end()
	gpu.mu.Lock()
	gpu.held = nil
	gpu.mu.Unlock()
	waitForRow(t, m, "GPU-1", func(r sample.GPUTime) bool { return r.Job == job && !r.Held })
}

// A job without a GPU ends with its process.
func TestUserOfCUDAEnds(t *testing.T) {
	m, err := New(Config{Interval: 20 * time.Millisecond, Jobs: true, Device: "/dev/full"})
	if err != nil {
		t.Fatal(err)
	}
	m.sources.SetGPUs(&grown{})
	m.Start()
	t.Cleanup(m.Stop)
	pid, end := opener(t)
	job := m.Jobs.JobOf(pid)
	waitForRow(t, m, "", func(r sample.GPUTime) bool { return r.Job == job && r.Held })
	end()
	waitForRow(t, m, "", func(r sample.GPUTime) bool { return r.Job == job && !r.Held })
}
