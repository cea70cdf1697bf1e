package gpu

import (
	"math/rand/v2"
	"testing"
	"time"
)

// FuzzIntegral checks the integral's properties for any samples, split over readings in any way.
func FuzzIntegral(f *testing.F) {
	f.Add(uint64(1), uint8(60), uint8(5))
	f.Add(uint64(2), uint8(200), uint8(0))
	f.Add(uint64(3), uint8(2), uint8(255))
	f.Fuzz(func(t *testing.T, seed uint64, count, gaps uint8) {
		random := rand.New(rand.NewPCG(seed, 0))
		type value struct {
			at    time.Duration
			share float64
		}
		var values []value
		at := time.Duration(random.Int64N(int64(time.Hour)))
		var truth time.Duration // the sum over the samples
		for range int(count) + 2 {
			step := time.Duration(random.Int64N(int64(time.Second))) + 1
			if random.IntN(256) < int(gaps)/4 {
				step += maxPeriod
			}
			at += step
			values = append(values, value{at, random.Float64()})
		}
		var total, parts, forgetful integral
		for i, v := range values {
			total.add(v.at, v.share)
			if i > 0 && v.at-values[i-1].at <= maxPeriod {
				truth += time.Duration(v.share * float64(v.at-values[i-1].at))
			}
		}
		// The same in overlapping pieces, as of readings that request too much.
		for from := 0; from < len(values); {
			to := min(from+1+random.IntN(9), len(values))
			for _, v := range values[max(0, from-random.IntN(5)):to] {
				parts.add(v.at, v.share)
				forgetful.add(v.at, v.share)
			}
			forgetful.trim(values[from].at - time.Duration(random.Int64N(int64(time.Second))))
			from = to
		}
		first, last := values[0].at, values[len(values)-1].at
		before, grid := time.Duration(0), first-time.Second
		for moment := grid; moment < last+time.Second; {
			step := time.Duration(random.Int64N(int64(time.Second))) + 1
			busy := total.at(moment)
			if busy < before || busy-before > moment-grid+1 {
				t.Fatalf("got busy from %v to %v within %v", before, busy, moment-grid)
			}
			if again := parts.at(moment); again != busy {
				t.Fatalf("in parts: got %v at %v, want %v", again, moment, busy)
			}
			before, grid = busy, moment
			moment += step
		}
		end := last + 1
		if forgetful.at(end) != total.at(end) || total.at(end) < truth || len(forgetful.knots) > 2*len(values) {
			t.Fatalf("got %v after trimming and %v in all, want both equal and at least %v",
				forgetful.at(end), total.at(end), truth)
		}
	})
}

func TestIntegralGaps(t *testing.T) {
	var i integral
	i.add(0, 1)
	i.add(time.Second/2, 1)
	i.add(10*time.Second, 1)
	for moment, want := range map[time.Duration]time.Duration{
		0: 0, time.Second / 4: time.Second / 4, time.Second / 2: time.Second / 2, 9 * time.Second: time.Second / 2,
		9750 * time.Millisecond: 750 * time.Millisecond, 10 * time.Second: time.Second, time.Hour: time.Second,
	} {
		if got := i.at(moment); got != want {
			t.Errorf("at %v: got %v, want %v", moment, got, want)
		}
	}
	if i.add(10*time.Second, 1) || i.add(9*time.Second, 1) {
		t.Error("got a sample accepted that is not newer than the last, want it ignored")
	}
}
