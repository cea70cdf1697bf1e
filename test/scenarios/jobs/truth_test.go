//go:build linux

package main

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/test/scenarios/scenario"
)

// ms is a millisecond in nanoseconds, as logs count.
const ms = 1_000_000

// logOf writes a log and reads it.
func logOf(t *testing.T, texts ...string) *logged {
	t.Helper()
	var folders []string
	for _, text := range texts {
		folder := t.TempDir()
		if err := os.WriteFile(filepath.Join(folder, "1.log"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		folders = append(folders, folder)
	}
	l, err := readLogs(folders...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// pipeline is 100 ms of a main thread that waits for a worker: it reads for 30 ms of its 40, and reads again later.
const pipeline = `main window 0 100000000 0:a
main wait 0 40000000 worker0
main busy 40000000 90000000 0
main gpu 40000000 92000000 -
worker0 read 5000000 35000000 1000:5800000
worker0 read 45000000 60000000 1000:0
main other 95000000 100000000 timer
`

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-9 {
		t.Errorf("%s: got %v s, want %v", what, got, want)
	}
}

func TestTruthFollowsAWait(t *testing.T) {
	l := logOf(t, pipeline)
	cost := map[kind]float64{reading: 1000} // 1 us a byte from memory: 1 ms a read
	p := truth(l, drivers(l), true, 0, 100*ms, cost)
	near(t, "busy", p.Busy, 0.050)
	near(t, "storage", p.Storage, 0.0232) // of 30 ms, without what the read costs from memory, and without ready
	near(t, "ready", p.ready, 0.0058)
	near(t, "other", p.Other, 0.005)
	near(t, "CPU", p.CPU, 0.014) // 11 of the worker, 3 of its own
	near(t, "late", p.late, 0.002)
}

func TestTruthWithoutStorageIsCPU(t *testing.T) {
	l := logOf(t, pipeline)
	p := truth(l, drivers(l), true, 0, 100*ms, nil)
	near(t, "storage", p.Storage, 0)
	near(t, "CPU", p.CPU, 0.043)
	near(t, "late", p.late, 0.002)
}

func TestTruthWithoutGPU(t *testing.T) {
	l := logOf(t, "main window 0 100000000 0:a\nmain read 20000000 50000000 0:0\n")
	p := truth(l, drivers(l), false, 0, 100*ms, map[kind]float64{})
	near(t, "storage", p.Storage, 0.030)
	near(t, "CPU", p.CPU, 0.070)
	near(t, "busy and late", p.Busy+p.late, 0)
}

func TestTruthOfRanks(t *testing.T) {
	l := logOf(t, `rank0 begin 0 0 0
rank0 begin 100000000 0 -
rank0 wait 0 60000000 rank1
rank1 read 10000000 60000000 0:0
rank0 busy 60000000 100000000 0
rank1 busy 60000000 100000000 1
`)
	p := truth(l, drivers(l), true, 0, 100*ms, map[kind]float64{})
	near(t, "busy", p.Busy, 0.080)
	near(t, "storage", p.Storage, 0.100) // of both accelerators
	near(t, "CPU", p.CPU, 0.020)
	near(t, "late", p.late, 0)
	if len(l.windows) != 1 || l.windows[0].end != 0 {
		t.Errorf("got windows %+v, want one that lasts until the program ends", l.windows)
	}
}

// Two ranks in the same call log that they wait for each other. What the call does itself is CPU or other.
func TestTruthOfThreadsThatWaitForEachOther(t *testing.T) {
	l := logOf(t, `rank0 wait 20000000 50000000 rank1
rank1 read 0 30000000 1000:0
rank1 wait 30000000 50000000 rank0
`)
	p := truth(l, []string{"rank0"}, false, 0, 100*ms, map[kind]float64{})
	near(t, "storage", p.Storage, 0.010)
	near(t, "late", p.late, 0.020)
	near(t, "CPU", p.CPU, 0.070)
	near(t, "other", p.Other, 0)
}

func TestBusyIsTheUnionOfTwoJobs(t *testing.T) {
	l := logOf(t, "main window 0 100000000 0:a\nmain busy 0 30000000 0\n",
		"main read 0 90000000 0:0\nmain busy 20000000 60000000 0\n")
	p := truth(l, drivers(l), true, 0, 100*ms, map[kind]float64{})
	near(t, "busy", p.Busy, 0.060)
	near(t, "storage", p.Storage, 0) // the other job's read
	near(t, "late", p.late, 0)
}

func TestLateAndReadyAreNoErrors(t *testing.T) {
	d := divided{Parts: scenario.Parts{Busy: 0.4, Storage: 0.2, CPU: 0.2}, late: 0.1, ready: 0.1}
	for _, c := range []struct{ storage, cpu, other, want float64 }{
		{0.3, 0.3, 0, 0}, {0.2, 0.4, 0, 0}, {0.2, 0.3, 0.1, 0}, {0.3, 0.2, 0.1, 0}, {0.25, 0.25, 0.1, 0},
		{0.4, 0.2, 0, 0.1}, {0.1, 0.5, 0, 0.1},
	} {
		_, off := d.apart(scenario.Parts{Busy: 0.4, Storage: c.storage, CPU: c.cpu, Other: c.other})
		if math.Abs(off-c.want) > 1e-9 {
			t.Errorf("found %+v: got an error of %v, want %v", c, off, c.want)
		}
	}
	d = divided{Parts: scenario.Parts{Busy: 0.6, CPU: 0.15}, late: 0.25}
	if got := d.label(); got != "" {
		t.Errorf("got the label %q, want none: it depends on the late time", got)
	}
}

func TestCostsAreThoseOfTheReruns(t *testing.T) {
	l := logOf(t, `main read 0 50000000 1000:0
main read 100000000 100004000 1000:0
main read 110000000 110002000 1000:0
main write 120000000 120001000 500:0
`)
	got := costs(l, []logWindow{{start: 100 * ms, end: 200 * ms}})
	if got[reading] != 3 || got[writing] != 2 {
		t.Errorf("got %v ns a byte, want 3 to read and 2 to write", got)
	}
}

func TestRerunsThatDifferAreVoid(t *testing.T) {
	makes := func(b, ofOthers float64) []*result {
		return []*result{
			{Cold: true, Seconds: 4, Truth: scenario.Parts{Storage: 2, CPU: 2}},
			{Seconds: 2, Foreign: ofOthers}, {Seconds: b},
		}
	}
	for _, c := range []struct {
		b, others float64
		void      bool
	}{{2.1, 0, false}, {2.5, 0, true}, {2, 0.3, true}} {
		results := makes(c.b, c.others)
		rerun(results, true)
		if got := results[0].VoidSpeedup != ""; got != c.void {
			t.Errorf("reruns of 2 and %v s, %v by others: got void %v, want %v", c.b, c.others, got, c.void)
		}
		if want := 8 / (2 + c.b); math.Abs(results[0].Measured-want) > 1e-9 {
			t.Errorf("got a speed-up of %v, want %v", results[0].Measured, want)
		}
	}
}

func TestVoidWindowsCountNowhere(t *testing.T) {
	s := sum([]*result{
		{Label: window.GPUBound, Verdict: window.StorageBound, Error: 0.5},
		{Label: window.GPUBound, Verdict: window.StorageBound, Error: 0.9, Void: "shorter"},
		{Label: window.GPUBound, Verdict: window.GPUBound, Error: 0.1},
		{Verdict: window.CPUBound, Error: 0.2},
	})
	if s.falseStorage != 1 || len(s.wrong) != 1 || s.counted != 2 || len(s.ledger) != 3 || s.void != 1 {
		t.Errorf("got %+v, want one wrong verdict of two, and three ledgers", s)
	}
	if s.recall[window.GPUBound] != 0.5 || s.precision[window.StorageBound] != 0 {
		t.Errorf("got recall %v, precision %v, want 0.5 and 0", s.recall, s.precision)
	}
}

func TestASeedMakesTheSameJobs(t *testing.T) {
	names := map[string]bool{}
	for _, e := range entries() {
		if names[e.name] {
			t.Errorf("two jobs are named %s", e.name)
		}
		names[e.name] = true
		a, b, c := e.made(1), e.made(1), e.made(2)
		if a.String() != b.String() {
			t.Errorf("%s: got another job of the same seed", e.name)
		}
		if a.String() == c.String() {
			t.Errorf("%s: got the same job of another seed", e.name)
		}
		if _, err := os.Stat(filepath.Join("programs", a.Program)); err != nil {
			t.Error(err)
		}
	}
}
