package monitor

import (
	"context"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
)

// driver stands for a driver that keeps a buffer: its readings reach the monitor when it is asked, and lag behind.
type driver struct {
	lag  time.Duration
	busy func(at time.Duration) time.Duration

	mu     sync.Mutex
	sink   sample.Sink
	read   time.Duration // the newest sample
	status sample.GPUStatus
	calls  int
	held   []sample.GPUProcess // of GPU-1, where a second GPU works as well
}

func (d *driver) Run(ctx context.Context, sink sample.Sink) {
	d.mu.Lock()
	d.sink, d.read = sink, sample.Now().Mono
	d.mu.Unlock()
	for ctx.Err() == nil {
		d.fetch()
		select {
		case <-ctx.Done():
		case <-time.After(300 * time.Millisecond):
		}
	}
}

func (d *driver) CatchUp(context.Context) {
	d.mu.Lock()
	d.calls++
	d.mu.Unlock()
	d.fetch()
}

func (d *driver) fetch() {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := sample.Now()
	for ; d.read <= now.Mono-d.lag; d.read += 20 * time.Millisecond {
		at := sample.Stamp{Mono: d.read, Wall: now.Wall.Add(d.read - now.Mono)}
		s := &sample.Sample{At: at, GPUs: []sample.GPU{{ID: "GPU-1", Busy: d.busy(d.read), Status: d.status}}}
		if d.held != nil {
			s.GPUs = append(s.GPUs, sample.GPU{ID: "GPU-2", Busy: d.read})
			s.GPUProcesses, s.GPUProcessesRead = d.held, true
		}
		d.sink("gpu", s, nil)
	}
}

func withDriver(t *testing.T, d *driver) *Monitor {
	t.Helper()
	m, err := New(Config{Interval: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	m.sources.SetGPUs(d)
	m.Start()
	t.Cleanup(m.Stop)
	return m
}

// half is busy in every second one of stretches of 100 ms.
func half(at time.Duration) time.Duration {
	const stretch = 100 * time.Millisecond
	rest := at % (2 * stretch)
	return (at-rest)/2 + min(rest, stretch)
}

// doubt returns the uncertainty of a report: on a busy machine the driver may respond too late.
func doubt(r *window.Report) time.Duration {
	return time.Duration(r.Uncertainty * float64(r.GPUTime()))
}

// A GPU's readings may come late: what a window says of the GPU is as exact as if they had come at once.
func TestLateGPU(t *testing.T) {
	for name, lag := range map[string]time.Duration{"nothing": 0, "a driver's period": 150 * time.Millisecond} {
		d := &driver{lag: lag, busy: half}
		m := withDriver(t, d)
		time.Sleep(100 * time.Millisecond) // let the first rows come
		var sum, whole, doubts time.Duration
		at := m.Now()
		began := at
		outer, err := m.Windows.Begin(window.Window{Kind: window.Custom}, at)
		if err != nil {
			t.Fatal(err)
		}
		for range 6 {
			id, err := m.Windows.Begin(window.Window{Kind: window.Epoch}, at)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(70 * time.Millisecond)
			at = m.Now()
			r, err := m.Windows.End(id, at)
			if err != nil {
				t.Fatal(err)
			}
			if !r.Split || len(r.GPUIDs) != 1 || r.Busy+r.Storage+r.CPU+r.Other != r.Duration() {
				t.Errorf("%s late: %+v", name, r)
			}
			sum += r.Busy
			doubts += doubt(r)
			near(t, "an epoch's", r.Busy, half(r.End.Mono)-half(r.Start.Mono), 15*time.Millisecond+doubt(r))
		}
		r, err := m.Windows.End(outer, at)
		if err != nil {
			t.Fatal(err)
		}
		whole = half(at.At.Mono) - half(began.At.Mono)
		near(t, name+" late: the whole", r.Busy, whole, 20*time.Millisecond+doubt(r))
		near(t, name+" late: the sum of the parts", sum, whole, 60*time.Millisecond+doubts)
		if d.calls == 0 {
			t.Error("the driver was not asked at a window's end")
		}
		m.Stop()
	}
}

// TestEndDoesNotWait: a program gets an estimate at once, and the final report follows when the driver has returned the
// last samples.
func TestEndDoesNotWait(t *testing.T) {
	d := &driver{lag: 600 * time.Millisecond, busy: half}
	m := withDriver(t, d)
	time.Sleep(time.Second)
	id, err := m.Windows.Begin(window.Window{Kind: window.ModelLoad}, m.Now())
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(700 * time.Millisecond)
	end := m.Now()
	estimate, err := m.Windows.EndSoon(id, end, window.Outcome{})
	if err != nil {
		t.Fatal(err)
	}
	if took := sample.Now().Mono - end.At.Mono; took > 300*time.Millisecond {
		t.Errorf("the end took %v, want no waiting for the driver", took)
	}
	if estimate.Uncertainty < 0.2 || estimate.Verdict != window.Unknown {
		t.Errorf("got %s with uncertainty %.2f while most of the window is extrapolated, want unknown, over 0.2",
			estimate.Verdict, estimate.Uncertainty)
	}
	if ended := m.Windows.Ended(); len(ended) != 1 || len(m.Windows.Running()) != 0 || m.Windows.Open() != 0 {
		t.Errorf("got %d ended windows, and some open, want it among the ended ones", len(ended))
	}
	if _, err := m.Windows.End(id, end); err == nil {
		t.Error("got no error for the second end, want one")
	}
	var r *window.Report
	for until := time.Now().Add(5 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if r = m.Windows.Report(id); r != estimate || time.Now().After(until) {
			break
		}
	}
	if r == estimate || r.Uncertainty > 0.05 || r.Lacks(window.TooShort) {
		t.Errorf("got uncertainty %.2f in the end, want the driver's own samples", r.Uncertainty)
	}
	near(t, "in the end", r.Busy, half(r.End.Mono)-half(r.Start.Mono), 15*time.Millisecond)
}

func near(t *testing.T, what string, got, want, tolerance time.Duration) {
	t.Helper()
	if math.Abs(float64(got-want)) > float64(tolerance) {
		t.Errorf("%s busy time is %v, want %v within %v", what, got, want, tolerance)
	}
}

// The last GPU of a machine may stop answering: the ledger is then of the program's own time, and comes back.
func TestHungGPU(t *testing.T) {
	d := &driver{busy: half}
	m := withDriver(t, d)
	until := func(what string, gpus int) {
		t.Helper()
		found := func() int { return len(m.readings.History().IDs(history.GPUBusyTime)) }
		for end := time.Now().Add(10 * time.Second); found() != gpus; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: the GPUs are %v", what, m.readings.History().IDs(history.GPUBusyTime))
			}
		}
	}
	until("at first", 1)
	time.Sleep(50 * time.Millisecond)
	cut, err := m.Windows.Begin(window.Window{Kind: window.Epoch}, m.Now())
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond)
	m.CatchUp()
	d.mu.Lock()
	d.status = sample.GPUHung
	d.mu.Unlock()
	until("hung", 0)
	if now := m.Collect(); len(now.GPUs.GPUs) != 1 || now.GPUs.GPUs[0].Status != sample.GPUHung {
		t.Errorf("collected %+v", now.GPUs.GPUs)
	}
	time.Sleep(100 * time.Millisecond)
	r, err := m.Windows.End(cut, m.Now())
	if err != nil || len(r.GPUIDs) != 1 || r.Busy == 0 || r.Busy+r.Storage+r.CPU+r.Other != r.Duration() {
		t.Errorf("in the middle of a window: %v, %+v", err, r)
	}
	if r.Verdict != window.Unknown || !r.Interrupted ||
		!strings.Contains(explain.Finding(r), "could not be read for a part of this epoch") {
		t.Errorf("in the middle of a window: %s, %s", r.Verdict, explain.Finding(r))
	}
	m.Tick()
	id, err := m.Windows.Begin(window.Window{Kind: window.Epoch}, m.Now())
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(50 * time.Millisecond)
	if r, err := m.Windows.End(id, m.Now()); err != nil || len(r.GPUIDs) != 0 || !r.Split {
		t.Errorf("without a GPU: %v, %+v", err, r)
	}
	set := func(status sample.GPUStatus) {
		m.CatchUp()
		d.mu.Lock()
		d.status = status
		d.mu.Unlock()
	}
	set(sample.GPUWorks)
	until("again", 1)

	over, err := m.Windows.Begin(window.Window{Kind: window.Epoch}, m.Now())
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(100 * time.Millisecond)
	set(sample.GPUHung)
	until("hung again", 0)
	set(sample.GPUWorks)
	until("and back", 1)
	r, err = m.Windows.End(over, m.Now())
	if err != nil || r.Verdict != window.Unknown || !strings.Contains(explain.Finding(r), "could not be read for a part") {
		t.Errorf("away for a part of the window: %v, %s", err, explain.Finding(r))
	}
}

// A job's windows are of the GPUs that it holds, and not of its neighbours'.
func TestHeldGPUs(t *testing.T) {
	d := &driver{busy: half, held: []sample.GPUProcess{{GPU: "GPU-1", PID: os.Getpid()}, {GPU: "GPU-2", PID: 1}}}
	m := withDriver(t, d)
	if err := m.Jobs.Follow("job", os.Getpid(), "", false); err != nil {
		t.Fatal(err)
	}
	defer m.Jobs.Unfollow("job")
	m.CatchUp()
	at := m.Now()
	var ids []string
	for _, job := range []string{"job", ""} {
		id, err := m.Windows.Begin(window.Window{Kind: window.Epoch, Job: job}, at)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	time.Sleep(250 * time.Millisecond)
	end := m.Now()
	for i, want := range [][]string{{"GPU-1"}, {"GPU-1", "GPU-2"}} {
		if r, err := m.Windows.End(ids[i], end); err != nil || !slices.Equal(r.GPUIDs, want) {
			t.Errorf("%v: %v, want %v", err, r.GPUIDs, want)
		}
	}
}
