package window

import (
	"strings"
	"testing"
	"time"
)

// Without a GPU, and of the whole machine, the CPU time is anybody's: no verdict rests on it.
func TestWholeMachine(t *testing.T) {
	for _, test := range []struct {
		cpu, waited time.Duration
		own, all    Verdict
	}{
		{90 * time.Millisecond, 0, CPUBound, Unknown},
		{40 * time.Millisecond, 40 * time.Millisecond, Mixed, Unknown},
		{5 * time.Millisecond, 90 * time.Millisecond, StorageBound, StorageBound},
		{5 * time.Millisecond, 5 * time.Millisecond, Unknown, Unknown},
	} {
		m := newMachine(t, false)
		w := m.begin(Epoch)
		for range 20 {
			m.step(0, test.waited, test.cpu)
		}
		if own := m.reportAs(w, Process, false); own.Verdict != test.own {
			t.Errorf("a process: %s, want %s: %s", own.Verdict, test.own, own.Finding)
		}
		all := m.reportAs(w, Host, false)
		if all.Verdict != test.all || strings.Contains(all.Finding, "program") || all.Verdict == Unknown && all.Speedup != 0 {
			t.Errorf("the machine: %s, want %s: %s", all.Verdict, test.all, all.Finding)
		}
	}
}

// Where a process's reads cannot be told, its waiting cannot be told from others': the time that nothing explains may
// be that.
func TestUnseenReads(t *testing.T) {
	m := newMachine(t, false)
	w := m.begin(Epoch)
	for range 20 {
		m.step(0, 0, 40*time.Millisecond)
	}
	r := m.reportAs(w, Process, true)
	if r.Verdict != Unknown || r.Uncertainty < 0.5 || !strings.Contains(r.Remedy, "CAP_SYS_PTRACE") || r.Slow || r.Speedup != 0 {
		t.Errorf("%s, uncertainty %.2f: %s %s", r.Verdict, r.Uncertainty, r.Finding, r.Remedy)
	}
	m = newMachine(t, true)
	w = m.begin(Epoch)
	for range 20 {
		m.step(99*time.Millisecond, 0, 0)
	}
	if r := m.reportAs(w, Process, true); r.Verdict != GPUBound {
		t.Errorf("a busy GPU waits for nothing: %s", r.Verdict)
	}
}
