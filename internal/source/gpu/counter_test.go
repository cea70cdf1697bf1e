package gpu

import (
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

// A 32-bit counter is unwrapped exactly if it grows by less than 32 bits between readings, or with a hint.
func TestUnwrapper(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		truth := float64(random.Uint32())
		first := truth
		var w unwrapper
		begin := w.add(math.Mod(truth, wrap32), true, 0)
		for range 100 {
			step := float64(random.Uint32())
			hint := 0.0
			if random.IntN(2) == 0 { // accurate enough to count whole wraps
				step += wrap32 * float64(random.IntN(20))
				hint = step + (random.Float64()-0.5)*0.9*wrap32
			}
			truth += step
			if got := w.add(math.Mod(truth, wrap32), true, hint) - begin; got != truth-first {
				t.Fatalf("seed %d: got growth %v, want %v", seed, got, truth-first)
			}
		}
	}
}

func TestUnwrapperOfWideCounter(t *testing.T) {
	var w unwrapper
	for _, c := range [][2]float64{{5e9, 5e9}, {6e9, 6e9}, {100, 100}, {4e9, 4e9}, {50, 50}} {
		if got := w.add(c[0], false, 0); got != c[1] {
			t.Errorf("got %v for %v, want %v", got, c[0], c[1])
		}
	}
}

func TestCounterAccept(t *testing.T) {
	var c counter
	at := func(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }
	for i, step := range []struct {
		value, at float64
		want      bool
	}{{1e6, 1, true}, {1e6 + 10, 2, true}, {8e8, 3, false}, {1e6 + 12, 4, true}, {0, 5, false}, {1e6 + 15, 6, true},
		{8e8, 7, false}, {3, 8, false}, {8e8, 9, false}, {1e6 + 16, 10, true}, // never the same garbage for long
		{3, 11, false}, {5, 12, false}, {9, 13, false}, {12, 14, true}, {14, 15, true}, // a reset
		{8e8, 16, false}, {8e8, 17, false}, {8e8, 18, false}, {8e8, 19, true}} {
		if got := c.accept(step.value, at(step.at), 10); got != step.want {
			t.Errorf("step %d: got %v, want %v", i, got, step.want)
		}
	}
}

func TestMeter(t *testing.T) {
	var m meter
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 1000 {
				m.add([]string{"b", "a", "c"}[i%3], time.Duration(i))
			}
		})
	}
	all.Wait()
	got := m.sums()
	m.add("a", time.Hour)
	if len(got) != 3 || got[0].Name != "a" || got[1].Name != "b" || got[2].Name != "c" ||
		got[0].Count != 4*333 || got[1].Count != 4*334 ||
		got[1].Longest != 999 || got[0].Time+got[1].Time+got[2].Time != 4*499500 {
		t.Errorf("got %+v, want sums of a, b and c with 1333, 1334 and 1333 calls", got)
	}
}
