package alert

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

var hotLimits = Limits{
	Raise: 85, Clear: 80, RaiseAfter: 10 * time.Second, ClearAfter: 30 * time.Second, MinInterval: time.Minute,
}

func TestCondition(t *testing.T) {
	var c condition
	at := time.Duration(0)
	hold := func(value float64, seconds int, want ...change) {
		t.Helper()
		var got []change
		for range seconds {
			at += time.Second
			if change := c.evaluate(&hotLimits, at, value); change != unchanged {
				got = append(got, change)
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%v for %d s until %v: got changes %v, want %v", value, seconds, at, got, want)
		}
	}
	hold(70, 20)
	hold(90, 9) // too short
	hold(84, 1)
	hold(90, 10)
	hold(math.NaN(), 1) // unknown: the hold time starts again
	hold(90, 10)
	hold(90, 1, raised)
	if want := 42 * time.Second; c.edge != want {
		t.Errorf("edge: got %v, want %v", c.edge, want)
	}
	hold(82, 300) // between the thresholds
	hold(79, 29)
	hold(81, 1)
	hold(79, 31, resolved)
	hold(90, 59) // long enough, but within the minimum interval
	hold(90, 5, raised)
	at += time.Hour // suspended
	hold(70, 1)
	hold(70, 30, resolved)
	for _, past := range []time.Duration{at, at - time.Second} {
		if got := c.evaluate(&hotLimits, past, 200); got != unchanged {
			t.Errorf("evaluation at %v after %v: got change %v, want none", past, at, got)
		}
	}
}

func TestConditionWithoutRaiseAfter(t *testing.T) {
	l := Limits{Raise: 1, ClearAfter: 10 * time.Second, MinInterval: time.Minute}
	var c condition
	if got := c.evaluate(&l, 0, 1); got != raised {
		t.Fatalf("first evaluation: got %v, want raised", got)
	}
	changes := 0
	for at := time.Second; at <= time.Hour; at += time.Second { // clear every other second
		if c.evaluate(&l, at, float64(int(at/time.Second)%2)) != unchanged {
			changes++
		}
	}
	if changes != 0 {
		t.Errorf("never clear for 10 s: got %d changes, want 0", changes)
	}
}

// A signal that flaps at its threshold for an hour, at any rate, changes at most once in each minimum interval.
func TestFlapping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, seconds := range []int{1, 9, 10, 31, 120} {
			half := time.Duration(seconds) * time.Second
			var c condition
			began, changes := time.Now(), 0
			for time.Since(began) < time.Hour {
				value := 85.0
				if time.Since(began)/half%2 == 1 {
					value = 80
				}
				if c.evaluate(&hotLimits, time.Since(began), value) != unchanged {
					changes++
				}
				time.Sleep(time.Second)
			}
			if limit := int(time.Hour/hotLimits.MinInterval) + 1; changes > limit {
				t.Errorf("flapping every %v: got %d changes in an hour, want at most %d", half, changes, limit)
			}
			if half == 2*time.Minute && changes != 30 {
				t.Errorf("flapping every %v: got %d changes, want 30", half, changes)
			}
		}
	})
}

// checkSignal checks the properties that hold for any signal: changes alternate, no change comes within the minimum
// interval or before its hold time, and a signal that holds long enough always changes.
func checkSignal(t *testing.T, l Limits, steps []time.Duration, values []float64) {
	t.Helper()
	var c condition
	var at, changedAt, highSince, lowSince time.Duration // since when it is at or above Raise, at or below Clear
	last, ever := unchanged, false
	high, low := false, false
	for i, v := range values {
		at += steps[i]
		if steps[i] > maxGap {
			high, low = false, false
		}
		if is := v >= l.Raise; !is {
			high = false
		} else if !high {
			high, highSince = true, at
		}
		if is := v <= l.Clear; !is {
			low = false
		} else if !low {
			low, lowSince = true, at
		}
		allowed := !ever || at-changedAt >= l.MinInterval
		raises := last != raised && high && at-max(highSince, changedAt) >= l.RaiseAfter
		resolves := last == raised && low && at-max(lowSince, changedAt) >= l.ClearAfter
		got := c.evaluate(&l, at, v)
		switch {
		case got == unchanged && allowed && (raises || resolves):
			t.Fatalf("evaluation %d at %v: got no change of %v after its hold time, want one", i, at, v)
		case got == unchanged:
			continue
		case got == last || last == unchanged && got == resolved:
			t.Fatalf("evaluation %d: got %v after %v, want the other change", i, got, last)
		case !allowed:
			t.Fatalf("evaluation %d: got a change %v after the last, want at least %v", i, at-changedAt, l.MinInterval)
		case got == raised && (!high || at-highSince < l.RaiseAfter), got == resolved && (!low || at-lowSince < l.ClearAfter):
			t.Fatalf("evaluation %d at %v: got %v before its hold time", i, at, got)
		case c.edge > at || got == raised && c.edge != highSince || got == resolved && c.edge != lowSince:
			// Time before the last change does not count, so the edge may be the moment after it.
			if c.edge > at || c.edge < changedAt {
				t.Fatalf("evaluation %d: got edge %v, want it from %v to %v", i, c.edge, changedAt, at)
			}
		}
		last, changedAt, ever = got, at, true
	}
}

func TestRandomSignals(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		l := Limits{
			Raise: 1, Clear: 1 - r.Float64(), RaiseAfter: time.Duration(r.IntN(30)) * time.Second,
			ClearAfter: time.Duration(r.IntN(30)) * time.Second, MinInterval: time.Duration(r.IntN(90)) * time.Second,
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
		checkSignal(t, l, steps, values)
	}
}

func FuzzCondition(f *testing.F) {
	f.Add([]byte{9, 9, 9, 0, 0, 0, 9}, uint8(2), uint8(3), uint8(4))
	f.Fuzz(func(t *testing.T, signal []byte, raiseAfter, clearAfter, minInterval uint8) {
		l := Limits{
			Raise: 8, Clear: 4, RaiseAfter: time.Duration(raiseAfter) * time.Second,
			ClearAfter: time.Duration(clearAfter) * time.Second, MinInterval: time.Duration(minInterval) * time.Second,
		}
		steps, values := make([]time.Duration, len(signal)), make([]float64, len(signal))
		for i, b := range signal {
			steps[i], values[i] = time.Duration(1+b>>4)*time.Second, float64(b&15)
			if b&15 == 15 {
				values[i] = math.NaN()
			}
		}
		checkSignal(t, l, steps, values)
	})
}
