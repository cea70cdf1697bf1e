package bench

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// Every time is in its bucket, the buckets have no gaps, and none is wider than a 64th of its times.
func TestBuckets(t *testing.T) {
	last := time.Duration(0)
	for i := range buckets {
		from, to := bounds(i)
		if from != last || to <= from {
			t.Fatalf("bucket %d is from %d to %d, the one before ends at %d", i, from, to, last)
		}
		if width := to - from; width > 1 && width > from>>fine {
			t.Fatalf("bucket %d from %d is %d wide", i, from, width)
		}
		if bucket(from) != i || bucket(to-1) != i {
			t.Fatalf("bucket %d: its bounds are counted in %d and %d", i, bucket(from), bucket(to-1))
		}
		last = to
	}
	if last < time.Hour {
		t.Errorf("it ends at %v", last)
	}
	if bucket(math.MaxInt64) != buckets-1 || bucket(-1) != 0 {
		t.Errorf("out of range: %d, %d", bucket(math.MaxInt64), bucket(-1))
	}
}

// For any times, a quantile equals that of the sorted times, to 1.6 %, also after a merge.
func TestQuantiles(t *testing.T) {
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 2))
		var a, b histogram
		var all []time.Duration
		for range 1 + rng.IntN(500) {
			d := time.Duration(math.Exp(rng.Float64() * math.Log(1e12)))
			all = append(all, d)
			if rng.IntN(2) == 0 {
				a.add(d)
			} else {
				b.add(d)
			}
		}
		a.merge(&b)
		slices.Sort(all)
		for _, share := range []float64{0.001, 0.5, 0.99, 1} {
			want := all[max(0, int(math.Ceil(share*float64(len(all))))-1)].Seconds()
			if got := a.quantile(share); math.Abs(got-want) > want/64+1e-9 {
				t.Errorf("seed %d: %v of %d is %v, want %v", seed, share, len(all), got, want)
			}
		}
	}
	if got := new(histogram).quantile(0.5); got != 0 {
		t.Errorf("of nothing: %v", got)
	}
}

// Two outliers in ten parts do not change the rate. A short step, or one with few reads, is counted as a whole.
func TestRate(t *testing.T) {
	const step = time.Second
	var even tally
	for i := range 1000 {
		at := time.Duration(i+1) * time.Millisecond
		if part := i / 100; part == 3 || part == 7 {
			continue // nothing came
		}
		even.took(at, time.Millisecond, step, 10)
	}
	if got := even.rate(step); math.Abs(got-1000) > 10 || even.bytes != 8000 {
		t.Errorf("%v reads a second, %d bytes", got, even.bytes)
	}
	var cut tally
	for i := range 500 {
		cut.took(time.Duration(i+1)*time.Millisecond, time.Millisecond, step, 10)
	}
	if got := cut.rate(step); math.Abs(got-1000) > 1e-6 {
		t.Errorf("cut short: %v", got)
	}
	var few tally
	few.took(3*time.Second, 3*time.Second, step, 10)
	if got := few.rate(step); math.Abs(got-1./3) > 1e-6 {
		t.Errorf("one slow read: %v", got)
	}
	if got := new(tally).rate(step); got != 0 {
		t.Errorf("nothing: %v", got)
	}
}
