package history

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestClock(t *testing.T) {
	var c clock
	if _, ok := c.mono(noon, time.Hour); ok {
		t.Error("without a reading: got a time, want none")
	}
	note := func(mono time.Duration, wall time.Time) { c.note(sample.Stamp{Mono: mono, Wall: wall}) }
	now := time.Hour + time.Second
	check := func(wall time.Time, want time.Duration) {
		t.Helper()
		if got, ok := c.mono(wall, now); !ok || got != want {
			t.Errorf("%v: got %v, want %v", wall, got, want)
		}
	}
	note(time.Hour, noon)
	note(time.Hour+time.Second, noon.Add(time.Second+time.Microsecond)) // read one after the other
	check(noon.Add(-time.Minute), time.Hour-time.Minute)
	check(noon.Add(time.Second), time.Hour+time.Second)

	check(noon.Add(time.Minute), time.Hour+time.Minute) // in the future
	check(time.Unix(0, math.MinInt64), time.Unix(0, math.MinInt64).Sub(noon.Add(-time.Hour)))

	forward := time.Hour + 10*time.Second // set ahead by an hour
	note(forward, noon.Add(10*time.Second+time.Hour))
	now = forward + 5*time.Second
	check(noon.Add(9*time.Second), time.Hour+9*time.Second)
	check(noon.Add(30*time.Minute), forward)
	check(noon.Add(time.Hour+11*time.Second), forward+time.Second)

	back := forward + 10*time.Second // and back again
	note(back, noon.Add(20*time.Second))
	now = back + 30*time.Minute
	check(noon.Add(time.Hour+11*time.Second), forward+time.Second) // the clock will show it again, but not yet
	check(noon.Add(21*time.Second), back+time.Second)
	now = back + 2*time.Hour
	if at, ok := c.mono(noon.Add(time.Hour+11*time.Second), now); ok {
		t.Errorf("a time that was shown twice: got %v, want none", at)
	}
	check(noon.Add(time.Hour+31*time.Second), back+time.Hour+11*time.Second)
	check(noon.Add(5*time.Second), time.Hour+5*time.Second)
	if len(c.steps) != 3 {
		t.Errorf("got %d steps, want 3", len(c.steps))
	}
}

// However often the clock is set, the newest wall time converts back, unless the clock had shown it before.
func TestManyClockSteps(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var c clock
	mono, ahead, certain := time.Minute, int64(0), 0
	for range 3 * maxClockSteps {
		mono += time.Duration(rng.Int64N(int64(time.Second)))
		if rng.IntN(2) == 0 {
			ahead += rng.Int64N(int64(time.Hour)) - int64(30*time.Minute)
		}
		wall := noon.Add(mono + time.Duration(ahead))
		c.note(sample.Stamp{Mono: mono, Wall: wall})
		got, ok := c.mono(wall, mono)
		if ok {
			certain++
		}
		if ok && (got-mono).Abs() > sameClock {
			t.Fatalf("got %v, want %v", got, mono)
		}
	}
	if certain < maxClockSteps/10 {
		t.Errorf("got %d unique times, want at least %d", certain, maxClockSteps/10)
	}
	if len(c.steps) > maxClockSteps {
		t.Errorf("got %d steps, want at most %d", len(c.steps), maxClockSteps)
	}
}

// A point after the newest row is interpolated between that row and a later reading.
func TestNext(t *testing.T) {
	h := newHistory(t)
	add(t, h, disk(tick, "sda", 100))
	add(t, h, disk(2*tick, "sda", 1100))
	var edge Edge
	h.Observe(&edge, disk(2*tick+50*time.Millisecond, "sda", 1300))
	next := &Next{2*tick + 50*time.Millisecond, &edge}
	end := Point{At: 2*tick + 25*time.Millisecond, Next: next}
	got, ok := h.Between(read("sda"), at(tick), end)
	if want := (Delta{1000, 1100, 1200, false}); !ok || got != want {
		t.Fatalf("got %+v, want %+v", got, want)
	}
	if _, ok := h.Between(read("sda"), at(tick), at(end.At)); ok {
		t.Error("after the newest row, without a later reading: got a result, want none")
	}
	add(t, h, disk(3*tick, "sda", 2100)) // a newer row is more exact
	got, ok = h.Between(read("sda"), at(tick), end)
	if want := (Delta{1000, 1250, 2000, false}); !ok || got != want {
		t.Fatalf("got %+v, want %+v", got, want)
	}
	if first, ok := h.First(DiskReadIOs); !ok || first != tick {
		t.Errorf("first row: got %v, want %v", first, tick)
	}
}
