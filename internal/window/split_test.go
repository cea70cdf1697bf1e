package window

import (
	"math"
	"testing"
)

// FuzzSplit feeds a cell with anything: the parts are never negative, never exceed the cell, and busy time is not
// explained away.
func FuzzSplit(f *testing.F) {
	f.Add(0.1, 0.04, 0.05, 1.0, 0.1, 0.03, true, true, true)
	f.Add(0.1, 0.0, 0.1, 0.0, 0.0, 0.0, true, true, true)
	f.Add(0.1, 0.2, 0.2, 9.0, 9.0, 9.0, false, false, true)
	f.Add(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, true, false, false)
	f.Fuzz(func(t *testing.T, dt, busy, some, scopeCPU, queued, jobCPU float64, gpu, pressure, mine bool) {
		for _, v := range []float64{dt, busy, some, scopeCPU, queued, jobCPU} {
			if math.IsNaN(v) || math.IsInf(v, 0) || math.Abs(v) > 1e12 {
				t.Skip("no reading can be that") // differences of counters, clamped by the history
			}
		}
		c := cell{dt: dt, busy: busy, some: some, scopeCPU: max(0, scopeCPU), queued: queued, jobCPU: jobCPU,
			hasGPU: gpu, hasPressure: pressure, mine: mine}
		b, s, p := c.split()
		const slack = 1e-9
		if b < 0 || s < 0 || p < 0 || b+s+p > max(0, dt)*(1+slack) {
			t.Fatalf("%+v was split into %v, %v, %v", c, b, s, p)
		}
		if gpu && dt > 0 && math.Abs(b-clamp(busy, 0, dt)) > slack*dt {
			t.Fatalf("%+v: busy came out as %v", c, b)
		}
		if !mine && s != 0 {
			t.Fatalf("%+v: someone else's waiting was counted", c)
		}
	})
}

// TestWaited holds PSI's weighting against the cases that were measured on a real kernel.
func TestWaited(t *testing.T) {
	for _, c := range []struct {
		name           string
		some, scopeCPU float64 // a second each
		jobCPU         float64 // below zero in a cgroup of the job's own, where it is not told apart
		want, within   float64
	}{
		{"a reader alone, 99 % inside read()", 0.90, 0.09, -1, 0.90, 0.01},
		{"the same beside one busy thread", 0.45, 1.0, -1, 0.82, 0.01},
		{"the same when the busy thread is a stranger", 0.45, 1.09, 0.09, 0.91, 0.01},
		{"a reader that works half of its time beside a busy stranger", 0.25, 1.5, 0.5, 0.5, 0.01},
		{"nobody waits beside a busy stranger", 0, 1, 0, 0, 0},
		{"one that waits half of its time and works the other half", 0.5, 0.5, -1, 0.5, 0.01},
		{"two that wait all the time beside two that work", 0.5, 2.0, -1, 1, 0.01},
		{"nobody waits", 0, 1, -1, 0, 0},
		{"everybody waits", 1, 0, -1, 1, 0},
	} {
		got := cell{dt: 1, some: c.some, scopeCPU: c.scopeCPU, jobCPU: c.jobCPU, shared: c.jobCPU >= 0, hasPressure: true, mine: true}.waited()
		if math.Abs(got-c.want) > c.within {
			t.Errorf("%s: %.3f, want %.3f", c.name, got, c.want)
		}
	}
}

func TestSplit(t *testing.T) {
	for _, c := range []struct {
		name               string
		cell               cell
		busy, storage, cpu float64
	}{
		{"idle while the loader waits", cell{dt: 1, busy: 0.4, some: 0.6, scopeCPU: 0.1, jobCPU: 0.1, hasGPU: true, hasPressure: true, mine: true}, 0.4, 0.6, 0},
		{"idle while the loader decodes", cell{dt: 1, busy: 0.4, some: 0, scopeCPU: 1, jobCPU: 1, hasGPU: true, hasPressure: true, mine: true}, 0.4, 0, 0.6},
		{"heavy I/O beside a busy GPU", cell{dt: 1, busy: 1, some: 0.9, scopeCPU: 0.5, jobCPU: 0.5, hasGPU: true, hasPressure: true, mine: true}, 1, 0, 0},
		{"idle for no seen cause", cell{dt: 1, busy: 0.2, hasGPU: true, hasPressure: true, mine: true}, 0.2, 0, 0},
		{"no GPU, half CPU and half waiting", cell{dt: 1, some: 0.5, scopeCPU: 0.5, jobCPU: 0.5, hasPressure: true, mine: true}, 0, 0.5, 0.5},
		{"a kernel without PSI, by the queue", cell{dt: 1, busy: 0.5, queued: 0.45, hasGPU: true, mine: true}, 0.5, 0.45, 0},
		{"a queue of strangers", cell{dt: 1, busy: 0.5, queued: 0.45, hasGPU: true}, 0.5, 0, 0},
	} {
		busy, storage, cpu := c.cell.split()
		if math.Abs(busy-c.busy)+math.Abs(storage-c.storage)+math.Abs(cpu-c.cpu) > 0.01 {
			t.Errorf("%s: %.2f %.2f %.2f, want %.2f %.2f %.2f", c.name, busy, storage, cpu, c.busy, c.storage, c.cpu)
		}
	}
}

func TestVerdict(t *testing.T) {
	for _, c := range []struct {
		name string
		shares
		want Verdict
	}{
		{"busy", shares{busy: 0.95, storage: 0.05}, GPUBound},
		{"busy beside a stall that matters little", shares{busy: 0.9, storage: 0.1}, GPUBound},
		{"storage", shares{busy: 0.4, storage: 0.5, cpu: 0.1}, StorageBound},
		{"storage at its threshold", shares{busy: 0.84, storage: 0.15, cpu: 0.01}, StorageBound},
		{"cpu", shares{busy: 0.4, storage: 0.1, cpu: 0.5}, CPUBound},
		{"both", shares{busy: 0.3, storage: 0.3, cpu: 0.4}, Mixed},
		{"idle for an unknown cause", shares{busy: 0.1, storage: 0.2, other: 0.7}, Unknown},
		{"storage beside much that is unknown", shares{busy: 0, storage: 0.45, other: 0.55}, StorageBound},
		{"nothing large", shares{busy: 0.85, storage: 0.05, cpu: 0.05, other: 0.05}, Unknown},
		{"an idle machine", shares{other: 1}, Unknown},
	} {
		if got := c.verdict(); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestStarvedPipelineIsCPUBound(t *testing.T) {
	c := cell{dt: 1, busy: 0.3, jobCPU: 0.2, starved: 0.5, scopeCPU: 0.2, hasGPU: true, hasPressure: true, mine: true}
	if busy, storage, cpu := c.split(); busy != 0.3 || storage != 0 || cpu != 0.7 {
		t.Errorf("%v %v %v, want 0.3, 0 and 0.7", busy, storage, cpu)
	}
}

func TestFetchingIsStorage(t *testing.T) {
	c := cell{dt: 1, busy: 0.4, some: 0.4, scopeCPU: 0.25, jobCPU: 0.25, fetching: 0.15, hasGPU: true, hasPressure: true, mine: true}
	if _, storage, cpu := c.split(); math.Abs(storage-0.55) > 1e-9 || math.Abs(cpu-0.05) > 1e-9 {
		t.Errorf("storage %v and CPU %v, want 0.55 and what idle time is left", storage, cpu)
	}
}
