package monitor

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"sync"
	"syscall"
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

// opener starts a process that has a device open, and returns how to end it. Nothing else opens it: a parent that does
// so is a job, too, with its children.
func opener(t *testing.T) (pid int, end func()) {
	t.Helper()
	c := exec.Command("sh", "-c", "exec sleep 300 3</dev/full")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	end = sync.OnceFunc(func() { _ = c.Process.Kill(); _ = c.Wait() })
	t.Cleanup(end)
	return c.Process.Pid, end
}

// lookingForCUDA starts a Monitor of a GPU, which takes users of /dev/full for those of CUDA, until the test ends.
func lookingForCUDA(t *testing.T, gpu *grown) *Monitor {
	t.Helper()
	m, err := New(Config{Interval: 20 * time.Millisecond, Jobs: true, Device: "/dev/full"})
	if err != nil {
		t.Fatal(err)
	}
	m.sources.SetGPUs(gpu)
	m.Start()
	t.Cleanup(m.Stop)
	return m
}

// A process that has the device of CUDA open is a job without a GPU. It is the same job when it holds memory, and its
// time is that of its GPU from then on.
func TestUserOfCUDAIsAJob(t *testing.T) {
	t.Parallel()
	gpu := &grown{}
	m := lookingForCUDA(t, gpu)
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
	t.Parallel()
	m := lookingForCUDA(t, &grown{})
	pid, end := opener(t)
	job := m.Jobs.JobOf(pid)
	waitForRow(t, m, "", func(r sample.GPUTime) bool { return r.Job == job && r.Held })
	end()
	waitForRow(t, m, "", func(r sample.GPUTime) bool { return r.Job == job && !r.Held })
}

// A process is of the job of its parent for as long as that is followed, also if the parent uses CUDA no more or has
// ended.
func TestChildOfFormerUserOfCUDA(t *testing.T) {
	t.Parallel()
	m := lookingForCUDA(t, &grown{})
	c := exec.Command("sh", "-c", "exec 3</dev/full; read go; exec 3<&-; sleep 300 3</dev/full & echo $!; read go")
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL); _ = c.Wait() })
	job := m.Jobs.JobOf(c.Process.Pid)
	waitForRow(t, m, "", func(r sample.GPUTime) bool { return r.Job == job && r.Held })
	proceed := func() {
		if _, err := io.WriteString(in, "\n"); err != nil {
			t.Fatal(err)
		}
	}
	proceed()
	var child int
	if _, err := fmt.Fscan(out, &child); err != nil {
		t.Fatal(err)
	}
	for _, what := range []string{"its parent uses CUDA no more", "its parent has ended"} {
		pid, _ := opener(t) // it is found with the child, or after it
		other := m.Jobs.JobOf(pid)
		waitForRow(t, m, "", func(r sample.GPUTime) bool { return r.Job == other && r.Held && r.Sum() > time.Second })
		of := slices.DeleteFunc(m.Collect().Jobs.Processes, func(p sample.Process) bool { return p.PID != child })
		if len(of) != 1 || of[0].Job != job {
			t.Errorf("%s: got its process in %+v, want only %s", what, of, job)
		}
		if what == "its parent uses CUDA no more" {
			proceed()
			_ = c.Wait()
		}
	}
}
