package emulate

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"
	"time"
)

func TestTypicalMean(t *testing.T) {
	steady := slices.Repeat([]time.Duration{ms}, 320)
	hiccup := slices.Clone(steady)
	hiccup[17] = 5 * time.Second
	tail := slices.Clone(steady) // one read in ten takes ten times as long, as on a disk with a cache
	for i := 0; i < len(tail); i += 10 {
		tail[i] = 10 * ms
	}
	warmingUp := slices.Clone(steady)
	for i := range 40 {
		warmingUp[i] = 20 * ms
	}
	for name, c := range map[string]struct {
		times []time.Duration
		want  time.Duration
	}{
		"nothing":           {nil, 0},
		"one":               {[]time.Duration{3 * ms}, 3 * ms},
		"two":               {[]time.Duration{3 * ms, 5 * ms}, 4 * ms},
		"three":             {[]time.Duration{90 * ms, 3 * ms, 5 * ms}, 5 * ms},
		"steady":            {steady, ms},
		"one hiccup":        {hiccup, ms},
		"a slow first part": {warmingUp, ms},
		"a lasting tail":    {tail, 1900 * us},
		"longest there are": {[]time.Duration{math.MaxInt64, math.MaxInt64}, math.MaxInt64},
	} {
		if got := typicalMean(c.times); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func FuzzTypicalMean(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9})
	f.Fuzz(func(t *testing.T, data []byte) {
		var times []time.Duration
		for ; len(data) >= 4; data = data[4:] {
			times = append(times, time.Duration(binary.LittleEndian.Uint32(data)))
		}
		got := typicalMean(times)
		if len(times) > 0 && (got < slices.Min(times) || got > slices.Max(times)) {
			t.Fatalf("%v is not among %v", got, times)
		}
	})
}

func TestColdTime(t *testing.T) {
	for name, c := range map[string]struct{ alone, paused, compute, want time.Duration }{
		"a latency":                   {15 * ms, 15 * ms, 10 * ms, 15 * ms},
		"a slower start after a rest": {50 * us, 60 * us, 33 * us, 60 * us},
		"so many reads a second":      {15 * ms, 5 * ms, 10 * ms, 6666667},
		"the same, another rhythm":    {15 * ms, 10 * ms, 5 * ms, 6666667},
		"a rate and a latency":        {15 * ms, 10 * ms, 10 * ms, 9230769},
		"more earned than paused":     {15 * ms, 1 * ms, 10 * ms, 4888889},
		"no pause":                    {15 * ms, 14 * ms, 0, 14 * ms},
	} {
		if got := coldTime(c.alone, c.paused, c.compute); (got - c.want).Abs() > us {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func FuzzColdTime(f *testing.F) {
	f.Add(int64(15*ms), int64(5*ms), int64(10*ms))
	f.Add(int64(0), int64(0), int64(0))
	f.Fuzz(func(t *testing.T, alone, paused, compute int64) {
		const hour = int64(time.Hour)
		alone, paused, compute = abs(alone)%hour, abs(paused)%hour, abs(compute)%hour
		got := coldTime(time.Duration(alone), time.Duration(paused), time.Duration(compute))
		low, high := float64(paused)*0.44-1, float64(max(alone, paused))*1.0001+1
		if float64(got) < low || float64(got) > high+0.6*float64(compute) {
			t.Fatalf("coldTime(%d, %d, %d) = %d", alone, paused, compute, got)
		}
	})
}

func abs(n int64) int64 {
	if n == math.MinInt64 {
		return math.MaxInt64
	}
	return max(n, -n)
}
