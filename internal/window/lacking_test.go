package window

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// interrupted is the report of an epoch that waits for storage two thirds of the time, in the middle of which something is done
// to its disk.
func interrupted(t *testing.T, what func(*machine)) *Report {
	t.Helper()
	m := newMachine(t, true)
	w := m.begin(Epoch)
	w.Ceilings = []sample.Ceiling{{Disk: "sda", Read: 2 << 20}}
	for i := range 30 {
		if i == 15 {
			what(m)
		}
		m.step(30*time.Millisecond, 65*time.Millisecond, 0)
	}
	w.End, w.EndEdge = m.edge()
	return Make(m.history, &w, Machine{Leaves: []string{"sda"}, GPUs: []string{"gpu0"}, Target: m.target, Pressure: true,
		Scope: Process, Ceilings: []sample.Ceiling{{Disk: "sda", Read: 4 << 20}}})
}

// Of a disk that leaves in the middle, or begins to count again, what was seen is a part: the finding says so, and nothing is
// made of how that compares with the whole window's time.
func TestDiskForAPartOfTheWindow(t *testing.T) {
	const torn = "; sda came or left, or its counters began again, so its numbers are of what was seen."
	for name, c := range map[string]struct {
		what func(*machine)
		torn bool
	}{
		"whole": {func(*machine) {}, false},
		"left":  {func(m *machine) { m.disk.Name = "sdb" }, true},
		"reset": {func(m *machine) { m.disk = sample.Disk{Name: "sda", Leaf: true} }, true},
	} {
		r := interrupted(t, c.what)
		if r.Verdict != StorageBound || r.Interrupted != c.torn || strings.HasSuffix(r.Finding, torn) != c.torn {
			t.Errorf("%s: %s, interrupted %v: %s", name, r.Verdict, r.Interrupted, r.Finding)
		}
		if strings.Contains(r.Finding, ", queue ") == c.torn || strings.HasPrefix(r.Remedy, "Keep the data in memory or move it") != c.torn {
			t.Errorf("%s: %s %s", name, r.Finding, r.Remedy)
		}
		text, err := json.Marshal(r)
		if err != nil || strings.Contains(string(text), "read_ceiling_ratio") == c.torn {
			t.Errorf("%s: %v %s", name, err, text)
		}
		load := *r
		load.Kind = ModelLoad
		said := load.remedy(shares{storage: 1}, Machine{})
		if strings.HasPrefix(said, "Keep the model's file in memory") != c.torn || strings.Contains(said, "never seen") {
			t.Errorf("%s, as a load: %s", name, said)
		}
	}
}

// What becomes of a disk that the window does not work with is not told.
func TestAnotherDiskLeaves(t *testing.T) {
	r := &Report{torn: []string{"sdb", "sdc"}, From: []string{"sda"}, Disks: []DiskUse{
		{Name: "sda", ReadBytes: 1 << 30, ReadOperations: 1 << 10}, {Name: "sdb", ReadBytes: 1 << 20, ReadOperations: 1},
	}}
	if text := r.lacking(); text != "" {
		t.Error(text)
	}
	r.Verdict, r.Disks[0].ReadCeiling, r.End.Mono = StorageBound, 1<<40, time.Second
	if said := r.remedy(shares{storage: 1}, Machine{}); !strings.Contains(said, "more workers: sda read 1 GiB/s") {
		t.Error(said)
	}
	r.From = []string{"sda", "sdb"} // of which one may have read the most that was not seen
	if said := r.remedy(shares{storage: 1}, Machine{}); !strings.HasPrefix(said, "Keep the data in memory or move it") {
		t.Error(said)
	}
	r.Seen.Under = []string{"sdb", "sdc"} // which did nothing
	if text := r.lacking(); !strings.HasPrefix(text, "; sdb, sdc came or left, or their counters") {
		t.Error(text)
	}
}

// blind is the report of a window on a kernel without PSI, of ticks of which so many milliseconds go to these.
func blind(t *testing.T, scope Scope, gpu bool, busy, waited, cpu int) *Report {
	t.Helper()
	m := newMachineWithoutPressure(t, gpu)
	w := m.begin(Epoch)
	for range 20 {
		m.step(ms(busy), ms(waited), ms(cpu))
	}
	return m.reportAs(w, scope, false)
}

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }

// Without PSI a finding says that waiting may be missing, and never that there was none; where all that is idle may be waiting,
// the CPU's work is not held to be the limit.
func TestKernelWithoutPressure(t *testing.T) {
	const lacks = "; this kernel tells no I/O pressure, so waiting that shows in no disk's queue may be missing."
	for _, c := range []struct {
		name              string
		scope             Scope
		gpu               bool
		busy, waited, cpu int // of a tick of 100 ms
		verdict           Verdict
		says              string
	}{
		{"busy", Process, true, 95, 0, 0, GPUBound, ""},
		{"disk", Process, true, 10, 80, 0, StorageBound, "waited for storage 8"},
		{"decode", Process, true, 30, 0, 70, CPUBound, "CPU work of the input pipeline 70 %"},
		{"decode or not", Process, true, 30, 0, 30, Unknown, "waited for CPU work 30 %; 40 % was idle for a cause that was not seen"},
		{"little", Process, true, 60, 0, 5, Unknown, "no single stall that was seen is large (CPU 5 %), and 35 % was idle"},
		{"idle", Process, true, 20, 0, 5, Unknown, "75 % was idle for a cause that was not seen"},
		{"program", Process, false, 0, 0, 95, CPUBound, "on the CPU 95 % of the time;"},
		{"program or not", Process, false, 0, 0, 55, Unknown, "on the CPU 55 % of the time; 45 % was idle for a cause"},
		{"machine", Host, false, 0, 0, 55, Unknown, "at work 55 % of the time;"},
	} {
		r := blind(t, c.scope, c.gpu, c.busy, c.waited, c.cpu)
		if r.Verdict != c.verdict || !strings.Contains(r.Finding, c.says) || strings.Contains(r.Finding, "storage 0 %") {
			t.Errorf("%s: %s, want %s: %s", c.name, r.Verdict, c.verdict, r.Finding)
		}
		if strings.HasSuffix(r.Finding, lacks) != (c.verdict != GPUBound) {
			t.Errorf("%s: %s", c.name, r.Finding)
		}
		if half := r.Other.Seconds() / r.GPUTime().Seconds() / 2; c.scope != Host && r.Uncertainty < half {
			t.Errorf("%s: uncertainty %.2f, want at least %.2f", c.name, r.Uncertainty, half)
		}
	}
}
