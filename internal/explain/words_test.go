package explain

import (
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/window"
)

// TestPercentsAddUp: the shares of a row are whole numbers that add up to 100, and those of the sentence are the same.
func TestPercentsAddUp(t *testing.T) {
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	for _, parts := range [][]time.Duration{
		{ms(2045), ms(7454), ms(251), ms(250), 0}, {ms(333), ms(333), ms(334), 0, 0}, {ms(5735), ms(3935), 0, ms(175),
			ms(155)},
		{ms(995), 0, 0, 0, ms(5)}, {1, 1, 1, 1, 1}, {time.Hour, 0, 0, 0, 0}, {ms(145), ms(145), ms(145), ms(145),
			ms(420)},
	} {
		var total time.Duration
		for _, p := range parts {
			total += p
		}
		sum := 0
		for i, n := range wholePercents(total, parts...) {
			if exact := 100 * parts[i].Seconds() / total.Seconds(); float64(n) <= exact-1 || float64(n) >= exact+1 {
				t.Errorf("%v: got %d %% for %.2f %%", parts, n, exact)
			}
			sum += n
		}
		if sum != 100 {
			t.Errorf("%v: got %d %% in all, want 100", parts, sum)
		}
	}
}

// noCore is the report of 10 s without a GPU, in which a program ran for 2.6 s, had no core for 5.7 s, and waited for
// storage for 0.1 s.
func noCore() *window.Report {
	r := &window.Report{
		Facts: window.Facts{Scope: window.Process, CPUUsed: 1, CPUOthers: 1.5, Cores: 2},
		Ledger: window.Ledger{Split: true, Evidence: window.FromSchedule, CPU: 8300 * time.Millisecond,
			Ready: 5700 * time.Millisecond, Storage: 100 * time.Millisecond, Other: 1600 * time.Millisecond},
		Judgement: window.Judgement{Verdict: window.CPUBound},
	}
	r.Kind, r.End.Mono = window.Epoch, 10*time.Second
	return r
}

// TestNoCore: time without a core is a part of its own in the table, in JSON and in the sentence.
func TestNoCore(t *testing.T) {
	r := noCore()
	if row := NewRow(r); row.CPU != "26 %" || row.Ready != "57 %" || row.Storage != "1 %" || row.Other != "16 %" {
		t.Errorf("got the row %+v, want 26, 57, 1 and 16 %%", row)
	}
	j := NewReport(r)
	if sum := j.Process.OnCPU + j.Stall.Ready + j.Stall.Storage + j.Stall.Other; sum < 9.999 || sum > 10.001 {
		t.Errorf("got parts of %.3f s in JSON, want 10 s", sum)
	}
	want := "The program was on the CPU 26 % and had no core 57 % (other programs used 1.5 of the 2 cores) of the time"
	if got := Finding(r); !strings.HasPrefix(got, want) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := Remedy(r); got != "" {
		t.Errorf("got the remedy %q for what others did, want none", got)
	}
	r.CPUOthers = 0
	if got := Remedy(r); !strings.Contains(got, "start fewer threads") {
		t.Errorf("got the remedy %q for its own threads", got)
	}
	r.Verdict, r.Storage, r.CPU = window.StorageBound, 7*time.Second, 2*time.Second
	r.Ready, r.Other = time.Second, time.Second
	if got, want := Finding(r),
		"on the CPU 10 %, had no core 10 % and waited for storage 70 % of"; !strings.Contains(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestNoCoreInAllSentences: whatever the verdict, the sentence has the numbers of the table.
func TestNoCoreInAllSentences(t *testing.T) {
	wait := []window.OtherReason{{Kind: window.OtherTimer, Name: "sleep in the program", Time: 5 * time.Second}}
	network := window.PeerUse{Address: "10.0.0.7:443", Serves: true, Received: 200 << 20, Waited: time.Second}
	for _, verdict := range []window.Verdict{window.StorageBound, window.NetworkBound, window.CPUBound,
		window.WaitBound, window.Mixed, window.Unknown} {
		for _, gpus := range [][]string{nil, {"GPU-1"}, {"GPU-1", "GPU-2"}} {
			for _, s := range []window.Shares{{Storage: 0.1, CPU: 0.13, Ready: 0.21, Other: 0.56, Network: 0.2},
				{Busy: 0.4, Storage: 0.1, CPU: 0.13, Ready: 0.21, Other: 0.16}} {
				r := &window.Report{Ledger: window.Ledger{Evidence: window.FromSchedule}}
				r.GPUIDs, r.Scope, r.Verdict = gpus, window.Process, verdict
				divide(r, s)
				for _, part := range []*time.Duration{&r.Busy, &r.Storage, &r.CPU, &r.Ready, &r.Other, &r.Network} {
					*part *= time.Duration(max(1, len(gpus)))
				}
				if r.Peers = []window.PeerUse{network}; s.Other >= window.Thresholds.Other {
					r.OtherReasons = wait
				}
				got := Finding(r)
				alone := verdict == window.StorageBound && len(gpus) > 0 || verdict == window.NetworkBound && len(gpus) > 0
				if strings.Contains(got, "34 %") || !alone && !strings.Contains(got, "21 %") {
					t.Errorf("%s with %d GPUs: got %s\nwant 13 %% of CPU work and 21 %% without a core", verdict, len(gpus), got)
				}
			}
		}
	}
}

// TestFailed: a program that failed needs no advice on its speed.
func TestFailed(t *testing.T) {
	for _, kind := range []window.Kind{window.Custom, window.ModelLoad, window.Checkpoint, window.Epoch, window.Steps} {
		r := noCore()
		r.Kind, r.CPUOthers = kind, 0
		if Remedy(r) == "" {
			t.Errorf("%s: got no remedy for one that did not fail", kind)
		}
		r.Outcome = window.Outcome{Unfinished: true, Failed: true, Ended: "exit code 1"}
		if got := Remedy(r); got != "" || !strings.HasPrefix(Finding(r), "It failed after 10.0 s: exit code 1.") {
			t.Errorf("%s: got %q and the remedy %q, want how it ended", kind, Finding(r), got)
		}
		r.Silence = &window.Silence{Peer: &window.PeerUse{Address: "10.0.0.7:443"}, Since: time.Second, Until: r.End.Mono,
			Goes: true}
		if got := Finding(r); !strings.Contains(got, "exit code 1. Nothing has come from 10.0.0.7:443 for 9.0 s") ||
			!strings.Contains(Remedy(r), "10.0.0.7:443 sends nothing") {
			t.Errorf("%s: got %q and %q, want the peer that was silent until it failed", kind, got, Remedy(r))
		}
	}
}

func TestFaster(t *testing.T) {
	for _, c := range []struct {
		likely, low, high float64
		want              string
	}{
		{1.7, 1.6, 1.9, "about 1.7x faster (1.6 to 1.9)"},
		{13, 2.9, 21.6, "at least 2.9x faster"},
		{3.6, 2.5, 29.2, "at least 2.5x faster"},
		{3, 2, 6, "about 3.0x faster (2.0 to 6.0)"},
		{3, 2, 6.1, "at least 2.0x faster"},
		{2.4, 1.9, 0, "about 2.4x faster (at least 1.9x)"},
		{8, 1.9, 0, "at least 1.9x faster"},
		{2, 1.5, 1000, "at least 1.5x faster"},
		{2, 1, 4, "up to 4.0x faster"},
		{2, 1, 1000, "how much faster is not known"},
		{2, 0, 0, "about 2.0x faster"},
		{1.5, 1.52, 1.53, "about 1.5x faster"},
	} {
		if got := Faster(c.likely, c.low, c.high); got != c.want {
			t.Errorf("%v (%v to %v): got %q, want %q", c.likely, c.low, c.high, got, c.want)
		}
	}
}

// outOfStep are two GPUs in step. One is busy 20 % and waits for storage for the rest, and the other is busy 94 %.
func outOfStep() *window.Report {
	r := &window.Report{
		Facts: window.Facts{Scope: window.Process, GPUIDs: []string{"a", "b"}},
		Ledger: window.Ledger{Split: true, Evidence: window.FromSchedule, Busy: 11400 * time.Millisecond,
			Storage: 8600 * time.Millisecond, Gain: 1200 * time.Millisecond,
			Ledgers: []window.GPULedger{
				{ID: "a", Index: 0, Busy: 2 * time.Second, Storage: 8 * time.Second},
				{ID: "b", Index: 1, Busy: 9400 * time.Millisecond, Storage: 600 * time.Millisecond},
			}},
		Judgement: window.Judgement{Verdict: window.StorageBound, Speedup: 20 / 18.8, SpeedupLow: 1.05,
			SpeedupHigh: 1.07},
	}
	r.Kind, r.End.Mono = window.Epoch, 10*time.Second
	return r
}

// TestBusiestGPU: the GPU that bounds the prediction is named.
func TestBusiestGPU(t *testing.T) {
	r := outOfStep()
	want := "Look at what GPU 1 does besides the others: storage alone leaves little to gain, " +
		"because GPU 1 is busy 94 % and "
	if got := Remedy(r); got != want+"is the limit, or waits for the others in a collective." {
		t.Errorf("got %s", got)
	}
	for sm, does := range map[float64]string{
		0.1: "mostly waits for the others in a collective, with 10 % of its SMs at work.",
		0.9: "is the limit.",
	} {
		u := window.GPUUse{ID: "b", Busy: 0.94}
		u.Means.Set(history.SMActive, sm)
		r.Uses = []window.GPUUse{{ID: "a", Busy: 0.2}, u}
		if got := Remedy(r); got != want+does {
			t.Errorf("SMs %v: got %s, want that it %s", sm, got, does)
		}
	}
	r.Uses[1].Means.Set(history.SMActive, 0.9)
	r.Ledgers[1].Busy, r.Busy, r.Gain, r.Speedup, r.SpeedupHigh = 5*time.Second, 7*time.Second, 10*time.Second, 2, 2.1
	if got := Remedy(r); !strings.Contains(got, "2.0x faster") || !strings.Contains(got,
		"GPU 1 is busy 50 % and is the limit") {
		t.Errorf("got %s, want the gain and its bound", got)
	}
}

// TestKernelsWork: a prediction above what the printed storage share allows names what else is in it.
func TestKernelsWork(t *testing.T) {
	r := &window.Report{
		Facts: window.Facts{Scope: window.Process, Load: window.Load{Size: 1 << 30}},
		Ledger: window.Ledger{Split: true, Storage: 4400 * time.Millisecond, CPU: 5600 * time.Millisecond,
			Gain: 5800 * time.Millisecond},
		Judgement: window.Judgement{Verdict: window.Mixed, Speedup: 2.4, SpeedupLow: 1.9},
	}
	r.Kind, r.End.Mono = window.ModelLoad, 10*time.Second
	want := "about 2.4x faster (at least 1.9x), with 14 % of the kernel's work to fetch the data, which counts as on CPU"
	if got := Remedy(r); !strings.Contains(got, want) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	r.Gain, r.Speedup = r.Storage, 1/(1-0.44)
	if got := Remedy(r); strings.Contains(got, "kernel") {
		t.Errorf("got %s, want no word of the kernel", got)
	}
}

// TestPlainWords: no sentence speaks of windows, custom ones or scopes, which are our words.
func TestPlainWords(t *testing.T) {
	reports := []*window.Report{noCore(), outOfStep()}
	for i, set := range situations() {
		r := &window.Report{Facts: window.Facts{Scope: window.Process, GPUIDs: []string{"gpu0"},
			Disks: []window.DiskUse{{Name: "sda", ReadBytes: 500 << 20, ReadOperations: 500}}}}
		r.Speedup, r.Kind = 2.5, []window.Kind{window.Epoch, window.Custom}[i%2]
		set(r)
		reports = append(reports, r)
	}
	for reason := range unjudgedRemedies {
		r := noCore()
		r.Missing = []window.Missing{{Reason: reason, Device: "gpu0", Time: time.Second}}
		reports = append(reports, r)
	}
	for _, r := range reports {
		text := Finding(r) + " " + Remedy(r)
		for _, word := range []string{"window", "custom", "scope", " 0 us"} {
			if strings.Contains(text, word) {
				t.Errorf("got the word %q in: %s", word, text)
			}
		}
	}
}
