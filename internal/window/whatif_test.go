package window

import (
	"math"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

func TestDurations(t *testing.T) {
	for name, test := range map[string]struct {
		unsure
		short, long float64
	}{
		"only the GPU works":             {unsure{total: 10, likely: 4, shortest: 4, busy: 4}, 3.92, 4.04},
		"one thread computes, no GPU":    {unsure{total: 10, likely: 4, cpu: 4}, 3.12, 4.44},
		"in parallel with others":        {unsure{total: 10, likely: 4, cpu: 4, shared: 1}, 2.32, 4.84},
		"the replay hides all CPU stall": {unsure{total: 10, likely: 4, shortest: 4, busy: 4, cpu: 1}, 3.92, 5.14},
		"the kernel works for a second":  {unsure{total: 10, likely: 4, pending: 5, shortest: 4, busy: 4}, 3.92, 5.04},
		"all of it was waiting":          {unsure{total: 10}, 0.01, 0.01},
		"a second without evidence":      {unsure{total: 10, likely: 4, shortest: 2, busy: 4, dark: 1}, 2.92, 5.04},
	} {
		test.work = workDoubt
		short, long := test.durations()
		if math.Abs(short-test.short) > 1e-9 || math.Abs(long-test.long) > 1e-9 {
			t.Errorf("%s: got %.3f to %.3f s, want %.3f to %.3f", name, short, long, test.short, test.long)
		}
	}
}

// TestDoubtNeedsWaiting: work without any waiting for storage has no range, however busy the cores are. From the share
// of waiting on that is a stall, nothing is taken off the doubt.
func TestDoubtNeedsWaiting(t *testing.T) {
	r := &Report{Window: Window{End: sample.Stamp{Mono: 10 * time.Second}}, Facts: Facts{CPUUsed: 1}}
	r.CPU = 10 * time.Second
	v := &view{&r.Window, newHistory(t), &Machine{}}
	for waited, want := range map[time.Duration]float64{
		0: 10 / 9.8, 4 * time.Millisecond: 10 / (9.8 - 0.4*10*0.004/1.5), 1500 * time.Millisecond: 10 / 5.8,
		3 * time.Second: 10 / 5.8,
	} {
		u := newUnsure(v, r, 0, waited)
		u.dark = 0
		if short, _ := u.durations(); math.Abs(10/short-want) > 1e-9 {
			t.Errorf("%v of 10 s: up to %.3f times faster, want %.3f", waited, 10/short, want)
		}
	}
}

// TestWithRequests: of 10 s, 6 wait for peers. The GPU works for 1 s or not at all.
func TestWithRequests(t *testing.T) {
	for name, test := range map[string]struct {
		unsure
		short, long float64
	}{
		"all work hides behind the GPU, or none": {unsure{total: 10, likely: 4, shortest: 1, busy: 1}, 2.54, 5.1725},
		"the GPU works longer than all else":     {unsure{total: 10, likely: 4, shortest: 3, busy: 3}, 2.94, 4.9725},
		"no GPU":                                 {unsure{total: 10, likely: 4, cpu: 4}, 3.12, 5.2725},
	} {
		test.work, test.pending = workDoubt, test.likely
		short, long := test.withRequests(6)
		if math.Abs(short-test.short) > 1e-9 || math.Abs(long-test.long) > 1e-9 {
			t.Errorf("%s: got %.4f to %.4f s, want %.4f to %.4f", name, short, long, test.short, test.long)
		}
	}
}

func TestTwoWorkers(t *testing.T) {
	for _, test := range []struct {
		what         string
		gpus         []string
		storage, cpu time.Duration
		want         float64
	}{
		{"half of the time is read", []string{"gpu0"}, 5 * time.Second, time.Second, 10. / 4},
		{"nearly all", []string{"gpu0"}, 9 * time.Second, time.Second, 10. / 5},
		{"it hardly reads", []string{"gpu0"}, 100 * time.Millisecond, time.Second, 0},
		{"no GPU", nil, 5 * time.Second, time.Second, 0},
	} {
		r := &Report{Facts: Facts{GPUIDs: test.gpus}, Ledger: Ledger{Storage: test.storage, CPU: test.cpu}}
		if got := r.twoWorkers(10, 4); math.Abs(got-test.want) > 1e-9 {
			t.Errorf("%s: got %.2f, want %.2f", test.what, got, test.want)
		}
	}
}

// TestBoundRate: neither more workers nor a faster GPU get more from a device at its limit. Storage without waiting has
// no such bound.
func TestBoundRate(t *testing.T) {
	w := WhatIf{NoStorage: 3, Workers: 2, TwoWorkers: 1.05, GPU: 1.4}
	w.bound(0) // unknown
	w.bound(1.1)
	if want := (WhatIf{NoStorage: 3, Workers: 1.1, TwoWorkers: 1.05, GPU: 1.1}); w != want {
		t.Errorf("got %+v, want %+v", w, want)
	}
	w.bound(0.9) // the limit was exceeded for a moment
	if w.GPU != 1 {
		t.Errorf("got %v times as fast, want 1", w.GPU)
	}
}
