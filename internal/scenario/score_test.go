package scenario

import (
	"math"
	"strings"
	"testing"

	"github.com/stallspan/stallspan/internal/window"
)

// judged is a result of four seconds whose truth is all of the label's kind.
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
		t.Error("a precision of a verdict that nobody got")
	}
	if _, ok := s.Precision[window.GPUBound]; ok {
		t.Error("a precision of gpu_bound, which nobody got")
	}
	if r, ok := s.Recall[window.GPUBound]; !ok || r != 0 {
		t.Errorf("recall of gpu_bound %v, %v", r, ok)
	}
	if _, ok := s.Recall[window.Unknown]; ok {
		t.Error("a recall of a label that nobody has")
	}
}

func TestErrors(t *testing.T) {
	after := 1.5
	long := judged(window.StorageBound, window.StorageBound)
	long.Truth.Parts, long.Got.Parts = Parts{2, 2, 0, 0}, Parts{2, 1.8, 0.1, 0.1}
	long.Truth.Speedup, long.Got.Speedup, long.Got.VerdictAfter = 2, 1.9, &after
	short := judged(window.StorageBound, window.StorageBound)
	short.Seconds, short.Truth.Parts, short.Got.Parts = 1, Parts{0, 1, 0, 0}, Parts{1, 0, 0, 0}
	short.Truth.Speedup = 3
	void := judged(window.GPUBound, window.GPUBound)
	void.Void, void.Truth.Parts = "too near", Parts{4, 0, 0, 0}
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
	if missed := Sum(nil).Missed(); len(missed) != 11 {
		t.Errorf("of nothing, %d targets are missed: %s", len(missed), strings.Join(missed, "; "))
	}
	zero, exact := 0.5, 0.0
	var good []*Result
	for _, v := range Verdicts {
		r := judged(v, v)
		r.Truth.Parts, r.Got.Parts = Parts{1, 1, 1, 1}, Parts{1, 1, 1, 1}
		r.Truth.Speedup, r.Got.Speedup, r.Got.VerdictAfter = 2, 2.1, &zero
		r.Got.Device = &Device{AwaitError: exact}
		good = append(good, r)
	}
	if missed := Sum(good).Missed(); len(missed) > 0 {
		t.Errorf("missed: %s", strings.Join(missed, "; "))
	}
	good[0].Got.Device.BytesError = 512
	good[1].Got.Parts = Parts{1, 1, 0.7, 1.3}
	good[2].Got.Verdict = window.StorageBound
	missed := strings.Join(Sum(good).Missed(), "\n")
	for _, want := range []string{"1 of 5 windows", "ledger error", "precision of storage_bound: 0.500", "recall of gpu_bound: 0.000", "busy GPU"} {
		if !strings.Contains(missed, want) {
			t.Errorf("nothing is said of %q in\n%s", want, missed)
		}
	}
}
