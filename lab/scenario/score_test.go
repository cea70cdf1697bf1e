package scenario

import (
	"math"
	"strings"
	"testing"

	"github.com/stallspan/stallspan/internal/window"
)

// judged is a result of four seconds that are all of the label's kind.
func judged(label, verdict window.Verdict) *Result {
	return &Result{Name: "case", Label: label, Got: Got{Verdict: verdict}, Seconds: 4}
}

func TestClasses(t *testing.T) {
	s := Sum([]*Result{
		judged(window.StorageBound, window.StorageBound),
		judged(window.StorageBound, window.StorageBound),
		judged(window.StorageBound, window.Unknown),
		judged(window.GPUBound, window.StorageBound),
		judged(window.CPUBound, window.CPUBound),
		{Label: window.CPUBound, Got: Got{Verdict: window.Mixed}, Void: "too near"},
	})
	if p := s.Precision[window.StorageBound]; math.Abs(p-2.0/3) > 1e-9 {
		t.Errorf("precision of storage_bound %v", p)
	}
	if r := s.Recall[window.StorageBound]; math.Abs(r-2.0/3) > 1e-9 {
		t.Errorf("recall of storage_bound %v", r)
	}
	if s.FalseStorage != 1 || s.Void != 1 || s.Confusion[window.CPUBound][window.Mixed] != 0 {
		t.Errorf("%d false, %d void, confusion %v", s.FalseStorage, s.Void, s.Confusion)
	}
	if _, ok := s.Precision[window.Mixed]; ok {
		t.Error("Precision of a verdict without windows: got a value, want none")
	}
	if _, ok := s.Precision[window.GPUBound]; ok {
		t.Error("Precision of gpu_bound without windows: got a value, want none")
	}
	if r, ok := s.Recall[window.GPUBound]; !ok || r != 0 {
		t.Errorf("recall of gpu_bound %v, %v", r, ok)
	}
	if _, ok := s.Recall[window.Unknown]; ok {
		t.Error("Recall of a label without windows: got a value, want none")
	}
}

func TestErrors(t *testing.T) {
	after := 1.5
	long := judged(window.StorageBound, window.StorageBound)
	long.Truth.Parts, long.Got.Parts = Parts{2, 2, 0, 0, 0}, Parts{2, 1.8, 0.1, 0.1, 0}
	long.Truth.Speedup, long.Got.Speedup, long.Got.VerdictAfter = 2, 1.9, &after
	short := judged(window.StorageBound, window.StorageBound)
	short.Seconds, short.Truth.Parts, short.Got.Parts = 1, Parts{0, 1, 0, 0, 0}, Parts{1, 0, 0, 0, 0}
	short.Truth.Speedup = 3
	void := judged(window.GPUBound, window.GPUBound)
	void.Void, void.Truth.Parts = "too near", Parts{4, 0, 0, 0, 0}
	void.Got.Device = &Device{OperationsError: 1}
	s := Sum([]*Result{long, short, void})
	for what, v := range map[string]struct {
		got  *float64
		want float64
	}{
		"ledger p50": {s.LedgerP50, 0.05}, "ledger p95": {s.LedgerP95, 0.05}, "speed-up p90": {s.SpeedupP90, 0.05},
		"verdict": {s.VerdictMax, 1.5}, "busy": {s.BusyMax, 0},
	} {
		if v.got == nil || math.Abs(*v.got-v.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", what, v.got, v.want)
		}
	}
	if s.Unpredicted != 1 || s.Devices != 0 || s.AwaitMax != nil {
		t.Errorf("%d without a prediction, %d devices, await %v", s.Unpredicted, s.Devices, s.AwaitMax)
	}
}

func TestPercentile(t *testing.T) {
	if Percentile(nil, 0.5) != nil {
		t.Error("a percentile of nothing")
	}
	values := []float64{5, 1, 4, 2, 3, 10, 9, 8, 7, 6}
	for p, want := range map[float64]float64{0: 1, 0.1: 1, 0.5: 5, 0.51: 6, 0.9: 9, 0.95: 10, 1: 10} {
		if got := Percentile(values, p); *got != want {
			t.Errorf("percentile %v is %v, want %v", p, *got, want)
		}
	}
	if values[0] != 5 {
		t.Error("the values were put in order in place")
	}
}

func TestMissed(t *testing.T) {
	if missed := Sum(nil).Missed(); len(missed) != 18 {
		t.Errorf("of nothing, %d targets are missed: %s", len(missed), strings.Join(missed, "; "))
	}
	soon, exact := 0.5, 0.0
	var good []*Result
	for _, v := range Verdicts {
		r := judged(v, v)
		r.Truth.Parts, r.Got.Parts = Parts{1, 1, 1, 1, 0}, Parts{1, 1, 1, 1, 0}
		r.Truth.Speedup, r.Got.Speedup, r.Got.VerdictAfter = 2, 2.1, &soon
		r.Got.ChangeAfter = &soon
		r.Got.Device = &Device{Found: Counters{Read: did(1)}, AwaitError: &exact, WriteAwaitError: &exact}
		good = append(good, r)
	}
	if missed := Sum(good).Missed(); len(missed) > 0 {
		t.Errorf("missed: %s", strings.Join(missed, "; "))
	}
	good[0].Got.Device.BytesError = 512
	late, far := 11.0, 0.02
	good[3].Got.ChangeAfter, good[4].Got.Device.WriteAwaitError = &late, &far
	good[1].Got.Parts = Parts{1, 1, 0.7, 1.3, 0}
	good[2].Got.Verdict = window.StorageBound
	missed := strings.Join(Sum(good).Missed(), "\n")
	for _, want := range []string{
		"1 of 5 windows", "ledger error", "precision of storage_bound: 0.500", "recall of gpu_bound: 0.000", "busy GPU",
		"change within a window to its verdict, most: 11.000", "await error of writes, largest: 0.020",
	} {
		if !strings.Contains(missed, want) {
			t.Errorf("missed: got\n%s\nwant a line about %q", missed, want)
		}
	}
}

// A window that is always void, or a case that never ran, is reported: the rates do not show it.
func TestMissedReportsCasesWithoutWindows(t *testing.T) {
	var results []*Result
	for _, v := range Verdicts {
		r := judged(v, v)
		r.Name = "phases/whole"
		results = append(results, r)
	}
	results[3].Void = "too near" // mixed
	s := Sum(results)
	s.Wanted = []string{"phases", "idle", "mixed"}
	missed := "\n" + strings.Join(s.Missed(), "\n") + "\n"
	for _, want := range []string{
		"phases/whole as mixed: none of 1 windows counts", "no window that is mixed counts",
		"no window at all of idle, mixed",
	} {
		if !strings.Contains(missed, "\n"+want+"\n") {
			t.Errorf("missed: got %s, want a line about %q", missed, want)
		}
	}
	again := judged(window.Mixed, window.Mixed)
	again.Name = "phases/whole"
	s = Sum(append(results, again))
	s.Wanted = []string{"phases"}
	if missed := strings.Join(s.Missed(), "\n"); strings.Contains(missed, "counts") || strings.Contains(missed, "at all") {
		t.Errorf("all of them have a window that counts:\n%s", missed)
	}
}

// The seed is that of the variants, whatever a replay requests.
func TestSeedOfResults(t *testing.T) {
	of := func(seeds ...uint64) *uint64 {
		var results []*Result
		for _, seed := range seeds {
			r := judged(window.GPUBound, window.GPUBound)
			r.Seed = seed
			results = append(results, r)
		}
		return Sum(results).Seed
	}
	if got := of(Seed(5, 0), Seed(5, 4), Retry(Seed(5, 1))); got == nil || *got != 5 {
		t.Errorf("of variants of seed 5: %v", got)
	}
	if got := of(Seed(5, 0), Seed(6, 0)); got != nil {
		t.Errorf("of two seeds: %v", *got)
	}
	if got := of(); got != nil {
		t.Errorf("of nothing: %v", *got)
	}
}

// A window without I/O in one direction proves nothing about that direction.
func TestAwaitOfWhatWasDone(t *testing.T) {
	exact, far := 0.0, 0.02
	writes, idle := judged(window.StorageBound, window.StorageBound), judged(window.StorageBound, window.StorageBound)
	writes.Got.Device = &Device{Found: Counters{Write: did(9)}, Most: Counters{Write: did(9)}, WriteAwaitError: &far}
	idle.Got.Device = &Device{}
	s := Sum([]*Result{writes, idle})
	if s.Devices != 1 || s.AwaitMax != nil || s.WriteAwaitMax == nil || *s.WriteAwaitMax != far {
		t.Errorf("%d devices, await %v and %v", s.Devices, s.AwaitMax, s.WriteAwaitMax)
	}
	reads := judged(window.StorageBound, window.StorageBound)
	reads.Got.Device = &Device{Found: Counters{Read: did(9)}, AwaitError: &exact}
	if s := Sum([]*Result{writes, idle, reads}); s.Devices != 2 || s.AwaitMax == nil || *s.AwaitMax != 0 ||
		*s.WriteAwaitMax != far {
		t.Errorf("%d devices, await %v and %v", s.Devices, s.AwaitMax, s.WriteAwaitMax)
	}
}

// For a pool, anything between log and rerun is right, and what lies outside of both is an error. For a single worker
// the log alone is right.
func TestLedgerOfAPool(t *testing.T) {
	truth := Truth{Parts: Parts{Busy: 3, Storage: 4, CPU: 2, Other: 1}, Unexplained: 1, Pool: true, Rerun: &Waits{}}
	for _, c := range []struct {
		name         string
		storage, cpu float64
		want         float64
	}{
		{"the log's", 4, 2, 0},
		{"the rerun's", 5, 1, 0},
		{"between", 4.5, 1.5, 0},
		{"more than both", 5.5, 0.5, 0.05},
		{"less than both", 3.5, 2.5, 0.05},
	} {
		r := Result{Truth: truth, Got: Got{Parts: Parts{Busy: 3, Storage: c.storage, CPU: c.cpu, Other: 1}}, Seconds: 10}
		if got := r.Ledger(); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: off by %v", c.name, got)
		}
		byLog := math.Abs(c.storage-4) / 10
		if got := r.LedgerByLog(); math.Abs(got-byLog) > 1e-9 {
			t.Errorf("%s: off by %v by the log", c.name, got)
		}
		r.Truth.Pool = false
		if got := r.Ledger(); math.Abs(got-byLog) > 1e-9 {
			t.Errorf("%s, of one worker: off by %v", c.name, got)
		}
	}
	fast := Result{Truth: truth, Got: Got{Parts: Parts{Busy: 3, Storage: 3.5, CPU: 2.5, Other: 1}}, Seconds: 10}
	if fast.Truth.Unexplained = -1; fast.Ledger() > 1e-9 {
		t.Errorf("ledger error: got %v, want 0 where the rerun charges more to the CPU", fast.Ledger())
	}
}
