package emulate

import (
	"math"
	"testing"
	"time"
)

const (
	us = time.Microsecond
	ms = time.Millisecond
)

func TestNewPlan(t *testing.T) {
	const records = 86016 // of the default files
	for _, c := range []struct {
		cold, warm time.Duration
		perStep    int
		compute    time.Duration
		steps      int
		stall      float64
	}{
		{10 * us, 1 * us, 800, 10 * ms, 107, 0.4}, // the fastest disks: all records, 1.4 s
		{20 * us, 2 * us, 400, 10 * ms, 215, 0.4},
		{50 * us, 2 * us, 160, 10 * ms, 444, 0.427},
		{100 * us, 2 * us, 80, 10 * ms, 444, 0.436},
		{333 * us, 2 * us, 25, 10406250, 427, 0.442},
		{1 * ms, 2 * us, 8, 10 * ms, 444, 0.444},
		{5 * ms, 2 * us, 2, 12500 * us, 356, 0.444},
		{8 * ms, 2 * us, 1, 10 * ms, 444, 0.444},
		{15 * ms, 5 * us, 1, 18750 * us, 237, 0.444}, // a spinning disk
		{16 * ms, 5 * us, 1, 20 * ms, 222, 0.444},
		{30 * ms, 5 * us, 1, 37500 * us, 119, 0.444},
		{10 * time.Second, 5 * us, 1, 12500 * ms, 1, 0.444},
	} {
		p := newPlan(c.cold, c.warm, records, 8*time.Second)
		if p.RecordsPerStep != c.perStep || p.Steps != c.steps || math.Abs(float64(p.Compute-c.compute)) > float64(us) ||
			math.Abs(p.StallShare()-c.stall) > 0.002 {
			t.Errorf("%v: %+v, stall share %.3f; want %d records, %v, %d steps, %.3f", c.cold, p, p.StallShare(), c.perStep,
				c.compute, c.steps, c.stall)
		}
		if read := float64(p.RecordsPerStep) * c.cold.Seconds(); math.Abs(read/p.Compute.Seconds()-0.8) > 0.001 {
			t.Errorf("%v: reading takes %.3f of the compute", c.cold, read/p.Compute.Seconds())
		}
	}
}

func TestNewPlanFitsTheEpochTime(t *testing.T) {
	for cold := 60 * us; cold <= 30*ms; cold += cold / 7 {
		for _, epoch := range []time.Duration{2 * time.Second, 8 * time.Second} {
			p := newPlan(cold, 2*us, 86016, epoch)
			if off := p.ColdTime() - epoch; off.Abs() > 40*ms || p.Compute < minCompute {
				t.Errorf("%v for %v: %+v takes %v", cold, epoch, p, p.ColdTime())
			}
			if speedup := p.ColdTime().Seconds() / p.WarmTime().Seconds(); speedup < 1.7 || speedup > 1.81 {
				t.Errorf("%v: from the page cache %.2f times as fast", cold, speedup)
			}
		}
	}
}

func TestPlanOfNothing(t *testing.T) {
	p := newPlan(ms, us, 0, time.Second)
	if p.Steps != 0 || p.RecordsPerStep != 0 || p.ColdTime() != 0 || p.StallShare() != 0 {
		t.Errorf("plan without records: got %+v, want no steps and no time", p)
	}
}

func FuzzNewPlan(f *testing.F) {
	f.Add(int64(20*us), int64(us), 86016, int64(8*time.Second))
	f.Add(int64(15*ms), int64(us), 168, int64(8*time.Second))
	f.Add(int64(0), int64(-1), 1, int64(0))
	f.Add(int64(math.MaxInt64), int64(math.MaxInt64), math.MaxInt, int64(math.MaxInt64))
	f.Add(int64(math.MinInt64), int64(math.MinInt64), math.MinInt, int64(math.MinInt64))
	f.Fuzz(func(t *testing.T, cold, warm int64, records int, epoch int64) {
		p := newPlan(time.Duration(cold), time.Duration(warm), records, time.Duration(epoch))
		if p.RecordsPerStep < 0 || p.Steps < 0 || p.Compute < 0 || p.Warm < 0 || p.Cold < p.Warm {
			t.Fatalf("plan: got %+v, want nothing negative and a warm time below the cold one", p)
		}
		if records > 0 && (p.RecordsPerStep == 0 || p.Steps == 0 || p.Steps > records/p.RecordsPerStep) {
			t.Fatalf("%+v of %d records", p, records)
		}
		if p.RecordsPerStep < records && p.Compute < minCompute-time.Microsecond {
			t.Fatalf("%+v has too short steps", p)
		}
		if share := p.StallShare(); share < 0 || share > 0.61 || p.ColdTime() < p.WarmTime() {
			t.Fatalf("%+v stalls for %v", p, share)
		}
		if p.ColdTime() > 2*longestEpoch {
			t.Fatalf("%+v takes %v", p, p.ColdTime())
		}
	})
}
