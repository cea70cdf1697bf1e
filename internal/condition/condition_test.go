package condition

import (
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

var hot = Limits{Raise: 85, Clear: 80, After: 10 * time.Second, Until: 30 * time.Second, Apart: time.Minute}

func TestState(t *testing.T) {
	var s State
	at := time.Duration(0)
	look := func(value float64, seconds int, want ...Change) {
		t.Helper()
		var got []Change
		for range seconds {
			at += time.Second
			if c := s.Look(&hot, at, value); c != None {
				got = append(got, c)
			}
		}
		if len(got) != len(want) || len(got) > 0 && got[0] != want[0] {
			t.Fatalf("%v for %d s until %v: %v, want %v", value, seconds, at, got, want)
		}
	}
	look(70, 20)
	look(90, 9) // too short
	look(84, 1)
	look(90, 10)
	look(math.NaN(), 1) // nothing is known: the time counts anew
	look(90, 10)
	look(90, 1, Raised)
	if s.Edge() != 42*time.Second {
		t.Errorf("it began at %v", s.Edge())
	}
	look(82, 300) // between the thresholds
	look(79, 29)
	look(81, 1)
	look(79, 31, Resolved)
	look(90, 59) // it was long enough, and comes too early
	look(90, 5, Raised)
	at += time.Hour // suspended
	look(70, 1)
	look(70, 30, Resolved)
	if s.Look(&hot, at, 200) != None || s.Look(&hot, at-time.Second, 200) != None {
		t.Error("a look into the past changed something")
	}
}

func TestAtOnce(t *testing.T) {
	l := Limits{Raise: 1, Until: 10 * time.Second, Apart: time.Minute}
	var s State
	if s.Look(&l, 0, 1) != Raised {
		t.Fatal("not at the first look")
	}
	told := 0
	for at := time.Second; at <= time.Hour; at += time.Second { // gone and back, again and again
		if s.Look(&l, at, float64(int(at/time.Second)%2)) != None {
			told++
		}
	}
	if told != 0 {
		t.Errorf("%d changes of what is never well for 10 s", told)
	}
}

// A signal that flaps at its threshold for an hour, at any pace, is told at most once a minimum duration.
func TestFlapping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, half := range []time.Duration{time.Second, 9 * time.Second, 10 * time.Second, 31 * time.Second, 2 * time.Minute} {
			var s State
			began, changes := time.Now(), 0
			for time.Since(began) < time.Hour {
				value := 85.0
				if time.Since(began)/half%2 == 1 {
					value = 80
				}
				if s.Look(&hot, time.Since(began), value) != None {
					changes++
				}
				time.Sleep(time.Second)
			}
			if most := int(time.Hour/hot.Apart) + 1; changes > most {
				t.Errorf("flapping each %v: %d events in an hour, at most %d", half, changes, most)
			}
			if half == 2*time.Minute && changes != 30 {
				t.Errorf("flapping each %v: %d events", half, changes)
			}
		}
	})
}

// hold checks what is promised of any signal: changes alternate, none comes within the minimum duration of the one before,
// none before its time, and a signal that stays long enough always changes.
func hold(t *testing.T, l Limits, steps []time.Duration, values []float64) {
	t.Helper()
	var s State
	var at, changed, high, low time.Duration // since when it is at or above Raise, at or below Clear
	last, ever := None, false
	highs, lows := false, false
	for i := range values {
		at += steps[i]
		v := values[i]
		if steps[i] > longestGap {
			highs, lows = false, false
		}
		if is := v >= l.Raise; !is {
			highs = false
		} else if !highs {
			highs, high = true, at
		}
		if is := v <= l.Clear; !is {
			lows = false
		} else if !lows {
			lows, low = true, at
		}
		free := !ever || at-changed >= l.Apart
		must := free && (last != Raised && highs && at-max(high, changed) >= l.After || last == Raised && lows && at-max(low, changed) >= l.Until)
		c := s.Look(&l, at, v)
		switch {
		case c == None && must:
			t.Fatalf("look %d at %v: %v has been there for long enough, and nothing was told", i, at, v)
		case c == None:
			continue
		case c == last || last == None && c == Resolved:
			t.Fatalf("look %d: %v after %v", i, c, last)
		case !free:
			t.Fatalf("look %d: %v after the change before", i, at-changed)
		case c == Raised && (!highs || at-high < l.After), c == Resolved && (!lows || at-low < l.Until):
			t.Fatalf("look %d at %v: too early", i, at)
		case s.Edge() > at || c == Raised && s.Edge() != high || c == Resolved && s.Edge() != low:
			// The time before the last change does not count, so the edge may be the moment behind it.
			if s.Edge() > at || s.Edge() < changed {
				t.Fatalf("look %d: the edge is %v", i, s.Edge())
			}
		}
		last, changed, ever = c, at, true
	}
}

func TestRandomSignals(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		l := Limits{
			Raise: 1, Clear: 1 - r.Float64(), After: time.Duration(r.IntN(30)) * time.Second,
			Until: time.Duration(r.IntN(30)) * time.Second, Apart: time.Duration(r.IntN(90)) * time.Second,
		}
		n := 2000
		steps, values := make([]time.Duration, n), make([]float64, n)
		v := 0.0
		for i := range n {
			if r.IntN(1+int(seed%20)) == 0 {
				v = 2 * r.Float64()
			}
			values[i] = v
			steps[i] = 1 + time.Duration(r.Int64N(int64(2*time.Second)))
			if r.IntN(200) == 0 {
				steps[i] = time.Minute
			}
			if r.IntN(300) == 0 {
				values[i] = math.NaN()
			}
		}
		hold(t, l, steps, values)
	}
}

func FuzzState(f *testing.F) {
	f.Add([]byte{9, 9, 9, 0, 0, 0, 9}, uint8(2), uint8(3), uint8(4))
	f.Fuzz(func(t *testing.T, signal []byte, after, until, apart uint8) {
		l := Limits{Raise: 8, Clear: 4, After: time.Duration(after) * time.Second, Until: time.Duration(until) * time.Second,
			Apart: time.Duration(apart) * time.Second}
		steps, values := make([]time.Duration, len(signal)), make([]float64, len(signal))
		for i, b := range signal {
			steps[i], values[i] = time.Duration(1+b>>4)*time.Second, float64(b&15)
			if b&15 == 15 {
				values[i] = math.NaN()
			}
		}
		hold(t, l, steps, values)
	})
}
