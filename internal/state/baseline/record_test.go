package baseline

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// The median and the p95 are those of the last MaxCount durations that were not slow.
func TestQuantiles(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		r := &Record{}
		var all []time.Duration
		for range random.IntN(200) {
			took := time.Duration(1 + random.Int64N(int64(time.Hour)))
			slow := random.IntN(4) == 0
			if !slow {
				all = append(all, took)
			}
			r.learn(took, slow, time.Unix(random.Int64N(1e9), 0))
		}
		last := slices.Sorted(slices.Values(all[max(0, len(all)-MaxCount):]))
		usual, known := r.Baseline()
		if n := len(last); known != (n >= MinCount) || usual.Count != n {
			t.Fatalf("got %+v, %v of %d durations; want %v", usual, known, n, n >= MinCount)
		}
		if len(last) == 0 {
			continue
		}
		median := last[len(last)/2]
		if len(last)%2 == 0 {
			median = (last[len(last)/2-1] + median) / 2
		}
		p95 := last[int(math.Ceil(0.95*float64(len(last))))-1]
		if usual.Median != median || usual.P95 != p95 {
			t.Fatalf("%v: got %+v, want %v and %v", last, usual, median, p95)
		}
	}
}

func TestSlowInARow(t *testing.T) {
	r := &Record{}
	for range 7 {
		r.learn(time.Second, false, time.Unix(100, 0))
	}
	for i := range 20 {
		r.learn(time.Minute, true, time.Unix(int64(200+i), 0))
	}
	if r.Slow != 20 || len(r.Durations) != 7 || r.P95() != time.Second || r.Last.Unix() != 219 {
		t.Errorf("got %+v, want 20 slow in a row, 7 durations of 1 s, last seen at 219 s", r)
	}
	if r.learn(time.Second, false, time.Unix(50, 0)); r.Slow != 0 || r.Last.Unix() != 219 {
		t.Errorf("got %+v, want none slow in a row, last seen at 219 s", r)
	}
}
