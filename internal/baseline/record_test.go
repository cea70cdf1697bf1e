package baseline

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"
)

// The median and p95 are those of a sorted list of the last Kept observations that were not slow, whatever came before.
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
		last := slices.Sorted(slices.Values(all[max(0, len(all)-Kept):]))
		usual, known := r.Usual()
		if n := len(last); known != (n >= Enough) || usual.Count != n {
			t.Fatalf("%d observations are %+v, %v", n, usual, known)
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
			t.Fatalf("%v: %+v, want %v and %v", last, usual, median, p95)
		}
		value := r.encode("load/x")
		if again, err := decode([]byte("load/x"), value); err != nil || !reflect.DeepEqual(again, r) {
			t.Fatalf("%+v came back as %+v, %v", r, again, err)
		}
		if _, err := decode([]byte("load/y"), value); err == nil {
			t.Fatal("another key's record was taken")
		}
	}
}

func TestSlowOnesInARow(t *testing.T) {
	r := &Record{}
	for range 7 {
		r.learn(time.Second, false, time.Unix(100, 0))
	}
	for i := range 20 {
		r.learn(time.Minute, true, time.Unix(int64(200+i), 0))
	}
	if r.Slow != 20 || len(r.Took) != 7 || r.P95() != time.Second || r.Last.Unix() != 219 {
		t.Errorf("%+v", r)
	}
	if r.learn(time.Second, false, time.Unix(50, 0)); r.Slow != 0 || r.Last.Unix() != 219 {
		t.Errorf("%+v", r)
	}
}

func FuzzDecode(f *testing.F) {
	value := (&Record{Took: []time.Duration{time.Second}, Last: time.Unix(1, 0)}).encode("epoch/train")
	f.Add([]byte("epoch/train"), value)
	f.Fuzz(func(t *testing.T, key, value []byte) {
		r, err := decode(key, value)
		if err == nil && (len(r.Took) > Kept || r.Slow < 0) {
			t.Errorf("%+v", r)
		}
	})
}
