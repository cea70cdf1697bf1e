package window

import (
	"slices"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/history"
)

const tick = 100 * time.Millisecond

// steps are reading intervals of a tick with these percentages of waiting, the first one at a second.
func steps(percent ...int) (all []history.Step) {
	at := time.Second
	for _, p := range percent {
		all = append(all, history.Step{Start: at, End: at + tick, Grown: float64(p) / 1000})
		at += tick
	}
	return all
}

func repeat(n int, percent ...int) []int { return slices.Repeat(percent, n) }

func TestStallsIn(t *testing.T) {
	ms := func(from, to int64) Stall {
		return Stall{time.Duration(1000+from) * time.Millisecond, time.Duration(1000+to) * time.Millisecond}
	}
	for name, test := range map[string]struct {
		percent []int
		want    []Stall
		began   time.Duration
	}{
		"none":                      {repeat(9, 20), nil, 0},
		"one short wait":            {[]int{0, 90, 0, 0, 0}, nil, 1100 * time.Millisecond},
		"a long wait has its ends":  {[]int{0, 30, 100, 100, 100, 40, 0}, []Stall{ms(170, 540)}, 1100 * time.Millisecond},
		"short waits last together": {repeat(10, 40), []Stall{ms(0, 400)}, time.Second},
		"pauses between them":       {repeat(5, 50, 0), []Stall{ms(0, 250)}, time.Second},
		"in four parts": {
			repeat(80, 50), []Stall{ms(0, 1000), ms(2000, 3000), ms(4000, 5000), ms(6000, 7000)}, time.Second,
		},
		"a part is at least a second": {repeat(20, 50), []Stall{ms(0, 500), ms(1000, 1500)}, time.Second},
		"a long wait among short ones": {
			slices.Concat(repeat(10, 50), []int{100, 100, 100, 100}, repeat(10, 50)),
			[]Stall{ms(0, 450), ms(950, 1450), ms(1500, 1950)}, time.Second,
		},
		"two long waits": {
			[]int{100, 100, 100, 30, 100, 100, 100}, []Stall{ms(0, 330), ms(400, 700)}, time.Second,
		},
		"a full reading is no long wait": {repeat(3, 50, 100, 40), []Stall{ms(0, 570)}, time.Second},
		"the longest": {
			repeat(9, 100, 100, 100, 0, 0, 0), // nine of 300 ms: the first eight are kept
			[]Stall{ms(0, 300), ms(600, 900), ms(1200, 1500), ms(1800, 2100), ms(2400, 2700), ms(3000, 3300),
				ms(3600, 3900), ms(4200, 4500)}, time.Second,
		},
	} {
		got, began := stallsIn(steps(test.percent...))
		if !slices.Equal(got, test.want) || began != test.began {
			t.Errorf("%s: got %v from %v, want %v from %v", name, got, began, test.want, test.began)
		}
	}
}

// Whatever the waiting: stalls are in order, do not overlap, lie in the window, and are hardly longer than the waiting.
func FuzzStalls(f *testing.F) {
	f.Add([]byte{0, 100, 100, 40, 30, 0, 90, 255})
	f.Fuzz(func(t *testing.T, percent []byte) {
		at, waited := time.Second, time.Duration(0)
		var all []history.Step
		for i, p := range percent {
			length := time.Duration(100+100*(i%3)) * time.Millisecond
			share := float64(p%120) / 100 // more than there is, too
			all = append(all, history.Step{Start: at, End: at + length, Grown: share * length.Seconds()})
			waited += min(seconds(share*length.Seconds()), length)
			at += length
		}
		stalls, began := stallsIn(all)
		if len(stalls) > maxStalls {
			t.Errorf("%d stalls, want at most %d", len(stalls), maxStalls)
		}
		end, sum := began, time.Duration(0)
		for _, s := range stalls {
			if s.Start < end || s.End <= s.Start || s.End > at {
				t.Errorf("%v after %v, in a window from 1 s to %v", s, end, at)
			}
			end, sum = s.End, sum+s.Waited()
		}
		if sum.Seconds() > waited.Seconds()/longShare {
			t.Errorf("%v in stalls, want at most %v / %v", sum, waited, longShare)
		}
	})
}
