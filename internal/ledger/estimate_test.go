package ledger

import (
	"math"
	"testing"
)

// FuzzSplit feeds a cell with anything: the parts are never negative, never exceed the cell, and busy time is not
// explained away.
func FuzzSplit(f *testing.F) {
	f.Add(0.1, 0.04, 0.05, 1.0, 0.1, 0.03, true, true, false, true)
	f.Add(0.1, 0.2, 0.2, 9.0, 9.0, 9.0, false, true, true, false)
	f.Add(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, false, false, true, true)
	f.Fuzz(func(t *testing.T, dt, busy, some, scopeCPU, queue, jobCPU float64, pressure, ownIO, shared, gpu bool) {
		for _, v := range []float64{dt, busy, some, scopeCPU, queue, jobCPU} {
			if math.IsNaN(v) || math.IsInf(v, 0) || math.Abs(v) > 1e12 {
				t.Skip("not a possible reading") // differences of counters, clamped by the history
			}
		}
		c := cell{dt: dt, busy: busy, some: some, scopeCPU: max(0, scopeCPU), queue: queue, jobCPU: jobCPU,
			hasPressure: pressure, ownIO: ownIO, shared: shared, hasGPU: gpu}
		got := c.split()
		b, s, p := got.busy, got.storage, got.cpu
		const slack = 1e-9
		if b < 0 || s < 0 || p < 0 || b+s+p > max(0, dt)*(1+slack) {
			t.Fatalf("%+v was split into %v, %v, %v", c, b, s, p)
		}
		if dt > 0 && math.Abs(b-clamp(busy, 0, dt)) > slack*dt {
			t.Fatalf("%+v: got %v s busy", c, b)
		}
		if !ownIO && s != 0 {
			t.Fatalf("%+v: another process's waiting counted", c)
		}
	})
}

// TestPSIWait compares PSI's weighting with cases that were measured on a real kernel.
func TestPSIWait(t *testing.T) {
	for _, c := range []struct {
		name           string
		some, scopeCPU float64 // a second each
		jobCPU         float64 // below zero in the job's own cgroup, where it is not known
		want, within   float64
	}{
		{"a reader alone, 99 % inside read()", 0.90, 0.09, -1, 0.90, 0.01},
		{"the same with one busy thread", 0.45, 1.0, -1, 0.82, 0.01},
		{"the same with a busy thread of another job", 0.45, 1.09, 0.09, 0.91, 0.01},
		{"a reader that works half of its time, with another busy job", 0.25, 1.5, 0.5, 0.5, 0.01},
		{"no process waits, with another busy job", 0, 1, 0, 0, 0},
		{"one that waits half of its time and works the other half", 0.5, 0.5, -1, 0.5, 0.01},
		{"two that wait all the time and two that work", 0.5, 2.0, -1, 1, 0.01},
		{"no process waits", 0, 1, -1, 0, 0},
		{"all processes wait", 1, 0, -1, 1, 0},
	} {
		got := cell{dt: 1, some: c.some, scopeCPU: c.scopeCPU, jobCPU: c.jobCPU, shared: c.jobCPU >= 0}.psiWait()
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
		{"idle while the loader waits", cell{busy: 0.4, some: 0.6, scopeCPU: 0.1, jobCPU: 0.1, hasPressure: true, ownIO: true, hasGPU: true}, 0.4, 0.6, 0},
		{"idle while the loader decodes", cell{busy: 0.4, scopeCPU: 1, jobCPU: 1, hasPressure: true, ownIO: true, hasGPU: true}, 0.4, 0, 0.6},
		{"heavy I/O with a busy GPU", cell{busy: 1, some: 0.9, scopeCPU: 0.5, jobCPU: 0.5, hasPressure: true, ownIO: true, hasGPU: true}, 1, 0, 0},
		{"idle without an explanation", cell{busy: 0.2, hasPressure: true, ownIO: true, hasGPU: true}, 0.2, 0, 0},
		{"no GPU, half CPU and half waiting", cell{some: 0.5, scopeCPU: 0.5, jobCPU: 0.5, hasPressure: true, ownIO: true}, 0, 0.5, 0.5},
		{"no core for its threads", cell{busy: 0.3, jobCPU: 0.2, starved: 0.5, scopeCPU: 0.2, hasPressure: true, ownIO: true, hasGPU: true}, 0.3, 0, 0.5},
		{"a kernel without PSI, by the queue", cell{busy: 0.5, queue: 0.45, ownIO: true, hasGPU: true}, 0.5, 0.45, 0},
		{"a queue of other jobs", cell{busy: 0.5, queue: 0.45, hasGPU: true}, 0.5, 0, 0},
		{"others wait more than the job", cell{some: 0.9, scopeCPU: 0.1, queue: 0.2, hasPressure: true, ownIO: true, shared: true}, 0, 0.2, 0},
	} {
		c.cell.dt = 1
		got := c.cell.split()
		if math.Abs(got.busy-c.busy)+math.Abs(got.storage-c.storage)+math.Abs(got.cpu-c.cpu) > 0.01 {
			t.Errorf("%s: got %.2f %.2f %.2f, want %.2f %.2f %.2f", c.name, got.busy, got.storage, got.cpu, c.busy,
				c.storage, c.cpu)
		}
	}
}

func TestOwnIO(t *testing.T) {
	for _, c := range []struct {
		name            string
		fetched, stored float64
		want            bool
	}{
		{"a read from a disk", 4096, 4096, true},
		{"a checkpoint", 0, 64 << 20, true},
		{"a log", 0, 4 << 10, false},
		{"nothing", 0, 0, false},
	} {
		before := levels{fetched: 5, stored: 12}
		if got := before.ownIO(levels{fetched: 5 + c.fetched, stored: 12 + c.stored}); got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}
