package explain

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/test/windowtest"
)

// TestHiddenReads: if a process's reads are not readable, its waiting cannot be separated from that of others. Idle
// time without an explanation may be such waiting.
func TestHiddenReads(t *testing.T) {
	m := windowtest.New(t, false)
	w := m.Begin(window.Epoch)
	for range 20 {
		m.Step(0, 0, 40*time.Millisecond)
	}
	m.End(&w)
	info := m.Info()
	info.HiddenReads = true
	r := window.Make(m.History, &w, info)
	if r.Verdict != window.Unknown || r.Uncertainty < 0.5 || !r.Lacks(window.HiddenReads) || r.Slow || r.Speedup != 0 {
		t.Errorf("%s, uncertainty %.2f, missing %v, slow %v, speed-up %v", r.Verdict, r.Uncertainty, r.Missing, r.Slow,
			r.Speedup)
	}
	if !strings.Contains(Remedy(r), "CAP_SYS_PTRACE") {
		t.Errorf("remedy %q, want the capabilities", Remedy(r))
	}
	m = windowtest.New(t, true)
	w = m.Begin(window.Epoch)
	for range 20 {
		m.Step(99*time.Millisecond, 0, 0)
	}
	m.End(&w)
	info = m.Info()
	info.HiddenReads = true
	if r := window.Make(m.History, &w, info); r.Verdict != window.GPUBound {
		t.Errorf("a busy GPU: %s, want %s", r.Verdict, window.GPUBound)
	}
}

// interrupted returns the report of an epoch that waits for storage two thirds of the time. In the middle, change does
// something to its disk.
func interrupted(t *testing.T, change func(*windowtest.Machine)) *window.Report {
	t.Helper()
	m := windowtest.New(t, true)
	w := m.Begin(window.Epoch)
	w.Ceilings = []sample.Ceiling{{Disk: "sda", Read: 2 << 20}}
	for i := range 30 {
		if i == 15 {
			change(m)
		}
		m.Step(30*time.Millisecond, 65*time.Millisecond, 0)
	}
	m.End(&w)
	info := m.Info()
	info.Ceilings = []sample.Ceiling{{Disk: "sda", Read: 4 << 20}}
	return window.Make(m.History, &w, info)
}

// TestDiskForAPartOfTheWindow: a disk that is removed or reset in the window has numbers of a part of it. The finding
// says so and does not compare them with the whole window's time.
func TestDiskForAPartOfTheWindow(t *testing.T) {
	const reset = "; sda was added, removed or reset, so its numbers cover a part of it."
	for name, c := range map[string]struct {
		change func(*windowtest.Machine)
		reset  bool
	}{
		"whole":   {func(*windowtest.Machine) {}, false},
		"removed": {func(m *windowtest.Machine) { m.Disk.Name = "sdb" }, true},
		"reset":   {func(m *windowtest.Machine) { m.Disk = sample.Disk{Name: "sda", Leaf: true} }, true},
	} {
		r := interrupted(t, c.change)
		finding := Finding(r)
		if r.Verdict != window.StorageBound || r.Interrupted != c.reset || strings.HasSuffix(finding,
			reset) != c.reset {
			t.Errorf("%s: %s, interrupted %v: %s", name, r.Verdict, r.Interrupted, finding)
		}
		if strings.Contains(finding, "; queue depth ") == c.reset ||
			strings.HasPrefix(Remedy(r), "Keep the data in memory or move it") != c.reset {
			t.Errorf("%s: got finding %q, remedy %q; want a queue %v", name, finding, Remedy(r), !c.reset)
		}
		text, err := json.Marshal(NewReport(r))
		if err != nil || strings.Contains(string(text), "read_ceiling_ratio") == c.reset {
			t.Errorf("%s: JSON: got %s, %v; want a ratio to the ceiling %v", name, text, err, !c.reset)
		}
		r.Kind = window.ModelLoad
		remedy := Remedy(r)
		if strings.HasPrefix(remedy, "Keep the model's file in memory") != c.reset ||
			strings.Contains(remedy, "has never read") {
			t.Errorf("%s, as a load: %s", name, remedy)
		}
	}
}

// withoutPressure returns the report of a window on a kernel without PSI, with so many milliseconds of each in a tick.
func withoutPressure(t *testing.T, scope window.Scope, gpu bool, busy, waited, cpu int) *window.Report {
	t.Helper()
	m := windowtest.NewWithoutPressure(t, gpu)
	w := m.Begin(window.Epoch)
	for range 20 {
		m.Step(ms(busy), ms(waited), ms(cpu))
	}
	m.End(&w)
	info := m.Info()
	info.Scope = scope
	return window.Make(m.History, &w, info)
}

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }

// TestKernelWithoutPressure: without PSI a finding reports possible waiting as missing, and never that there was none.
// If all idle time may be waiting, CPU work is not the limit.
func TestKernelWithoutPressure(t *testing.T) {
	const lacks = "; this kernel reports no I/O pressure, so waiting that shows in no disk's queue may be missing."
	const why = ", for a reason that is not known"
	for _, c := range []struct {
		name              string
		scope             window.Scope
		gpu               bool
		busy, waited, cpu int // of a tick of 100 ms; the work while the GPU is busy is in cpu
		verdict           window.Verdict
		finding           string
	}{
		{"busy", window.Process, true, 95, 0, 0, window.GPUBound, ""},
		{"disk", window.Process, true, 10, 80, 0, window.StorageBound, "waited for storage 8"},
		{"decode", window.Process, true, 30, 0, 100, window.CPUBound, "CPU work of the input pipeline 70 %"},
		{"decode or not", window.Process, true, 30, 0, 60, window.Unknown,
			"waited for CPU work 30 % and stood idle 40 %" + why},
		{"little", window.Process, true, 60, 0, 65, window.Unknown,
			"no stall is known to be large (CPU 5 %), and it was idle 35 %" + why},
		{"idle", window.Process, true, 20, 0, 25, window.Unknown, "busy 20 % of the time and idle 75 %" + why},
		{"program", window.Process, false, 0, 0, 95, window.CPUBound, "on the CPU 95 % of the time;"},
		{"program or not", window.Process, false, 0, 0, 55, window.Unknown,
			"on the CPU 55 % of the time and stood still 45 %" + why},
		{"machine", window.Host, false, 0, 0, 55, window.Unknown, "busy 55 % of the time;"},
	} {
		r := withoutPressure(t, c.scope, c.gpu, c.busy, c.waited, c.cpu)
		finding := Finding(r)
		if r.Verdict != c.verdict || !strings.Contains(finding, c.finding) || strings.Contains(finding, "storage 0 %") {
			t.Errorf("%s: %s, want %s with %q: %s", c.name, r.Verdict, c.verdict, c.finding, finding)
		}
		if strings.HasSuffix(finding, lacks) != (c.verdict != window.GPUBound) {
			t.Errorf("%s: got finding %q, want it to end with %q only if not gpu_bound", c.name, finding, lacks)
		}
		if half := r.Other.Seconds() / r.GPUTime().Seconds() / 2; c.scope != window.Host && r.Uncertainty < half {
			t.Errorf("%s: uncertainty %.2f, want at least %.2f", c.name, r.Uncertainty, half)
		}
	}
}

// TestWithoutVerdict has a sentence and a remedy for each reason without a verdict.
func TestWithoutVerdict(t *testing.T) {
	for reason, want := range map[window.Reason]string{
		window.UnknownGPU: "This machine has no readable GPU with the id gpu7, so the watched time cannot be divided.",
		window.NoReadings: "The watched time is older than the history, or too short for a reading.",
		window.GPULost:    "gpu7 could not be read for a part of the watched time. It was seen busy for 25 % of it.",
		window.ReadingGap: "The GPU was busy 25 % of the time. For 3.5 s of it there are no readings: the monitoring " +
			"process was stopped or got no CPU.",
		window.HiddenReads: "The GPU was busy 25 % of the time. The program's reads are not readable, so its storage stall " +
			"is not known.",
		window.TooShort: "The watched time lasted 10.0 s, too short to show what it waited for.",
		window.OpenEnds: "The watched time was detected: its start and end are open by 3.5 s together, too much to show " +
			"what it waited for.",
		window.NotFollowed: "The watched time was detected: its program was not followed for the first 3.5 s of it, so " +
			"what it waited for is not known.",
	} {
		r := &window.Report{Facts: window.Facts{GPUIDs: []string{"gpu7"}},
			Ledger: window.Ledger{Split: true, Busy: 2500 * time.Millisecond, Other: 7500 * time.Millisecond},
			Judgement: window.Judgement{Missing: []window.Missing{{Reason: window.NoIOPressure},
				{Reason: reason, Device: "gpu7", Time: 3500 * time.Millisecond}}}}
		r.End.Mono = 10 * time.Second
		if got := Finding(r); got != want {
			t.Errorf("%s: %q, want %q", reason, got, want)
		}
		if Remedy(r) != unjudgedRemedies[reason] || Remedy(r) == "" {
			t.Errorf("%s: remedy %q", reason, Remedy(r))
		}
	}
}

// TestResetDisks names the disks with numbers for a part of the window.
func TestResetDisks(t *testing.T) {
	r := &window.Report{Judgement: window.Judgement{Missing: []window.Missing{{Reason: window.DiskReset, Device: "sdb"},
		{Reason: window.DiskReset, Device: "sdc"}}}}
	if got := caveats(r); !strings.HasPrefix(got, "; sdb, sdc were added, removed or reset, so their") {
		t.Errorf("%q, want both disks", got)
	}
}
