package quantile

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// For any values, a quantile equals that of the sorted values, to 1 %, also after a merge.
func TestQuantiles(t *testing.T) {
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 2))
		var a, b Histogram
		var all []float64
		for range 1 + rng.IntN(500) {
			v := math.Exp(rng.Float64()*40 - 10)
			if rng.IntN(10) == 0 {
				v = 0
			}
			all = append(all, v)
			if rng.IntN(2) == 0 {
				a.Add(v)
			} else {
				b.Add(v)
			}
		}
		a.Merge(&b)
		slices.Sort(all)
		if a.N != uint64(len(all)) || len(a.counts) > 60*PerOctave {
			t.Errorf("seed %d: %d values in %d buckets, want %d values", seed, a.N, len(a.counts), len(all))
		}
		for _, share := range []float64{0.001, 0.5, 0.99, 1} {
			want := all[max(0, int(math.Ceil(share*float64(len(all))))-1)]
			if got := a.Quantile(share); math.Abs(got-want) > 0.01*want {
				t.Errorf("seed %d: %v of %d is %v, want %v", seed, share, len(all), got, want)
			}
		}
	}
	if got := new(Histogram).Quantile(0.5); got != 0 {
		t.Errorf("of nothing: %v", got)
	}
}
