package agent

import (
	"testing"
	"time"
)

type stepWindow struct {
	first, last int
	took        time.Duration
}

// windowsOf returns the windows of steps that are printed by ranks, each a little later than the one before.
func windowsOf(s *stepWindows, ranks int, skew time.Duration, took func(step int) time.Duration, steps int,
) (got []stepWindow) {
	type line struct {
		step int
		at   time.Duration
	}
	var lines []line
	var now time.Duration
	for step := 1; step <= steps; step++ {
		now += took(step)
		lines = append(lines, line{step, now})
	}
	behind := make([]int, ranks)
	for printed := 0; printed < ranks*steps; printed++ { // the next line of all ranks
		next := -1
		var at time.Duration
		for rank := range behind {
			if behind[rank] == steps {
				continue
			}
			if due := lines[behind[rank]].at + time.Duration(rank)*skew; next < 0 || due < at {
				next, at = rank, due
			}
		}
		step := lines[behind[next]].step
		behind[next]++
		first, began, open := s.first, s.began, s.open
		if ends, _ := s.reached(step, at); ends && open {
			got = append(got, stepWindow{first, s.first, at - began})
		}
	}
	return got
}

func TestStepWindows(t *testing.T) {
	second := func(int) time.Duration { return time.Second }
	for name, test := range map[string]struct {
		start stepWindows
		took  func(int) time.Duration
		steps int
		want  []stepWindow
	}{
		"a second each": {stepWindows{}, second, 41, []stepWindow{{1, 11, 10 * time.Second},
			{11, 20, 9 * time.Second}, {20, 30, 10 * time.Second}, {30, 40, 10 * time.Second}}},
		"a short run": {stepWindows{}, second, 9, nil},
		"long steps": {stepWindows{}, func(int) time.Duration { return time.Minute }, 3,
			[]stepWindow{{1, 2, time.Minute}, {2, 3, time.Minute}}},
		"five, as set": {stepWindows{size: 5, fixed: true}, second, 12,
			[]stepWindow{{1, 5, 4 * time.Second}, {5, 10, 5 * time.Second}}},
		"a slow start": {stepWindows{}, func(n int) time.Duration {
			if n < 3 {
				return 20 * time.Second
			}
			return time.Second
		}, 20, []stepWindow{{1, 2, 20 * time.Second}, {2, 10, 8 * time.Second}, {10, 20, 10 * time.Second}}},
	} {
		for _, ranks := range []int{1, 4} {
			s := test.start
			got := windowsOf(&s, ranks, 300*time.Millisecond, test.took, test.steps)
			if len(got) != len(test.want) {
				t.Errorf("%s, %d ranks: got %v, want %v", name, ranks, got, test.want)
				continue
			}
			for i := range got {
				if got[i].first != test.want[i].first || (got[i].took-test.want[i].took).Abs() > time.Second {
					t.Errorf("%s, %d ranks: got window %v, want %v", name, ranks, got[i], test.want[i])
				}
			}
		}
	}
}

// A second training begins a window of its own.
func TestStepsOfTwoTrainings(t *testing.T) {
	s := stepWindows{size: 10, fixed: true}
	for step := range 35 {
		s.reached(step, time.Duration(step)*time.Second)
	}
	if ends, begins := s.reached(0, 36*time.Second); !ends || !begins || s.first != 0 {
		t.Errorf("got ends %v, begins %v at %d, want a window from step 0", ends, begins, s.first)
	}
	if ends, _ := s.reached(10, 46*time.Second); !ends {
		t.Error("got no end after ten steps of the second training, want one")
	}
}

// A training of three days has hundreds of windows.
func TestStepWindowsBecomeLonger(t *testing.T) {
	s := stepWindows{}
	got := windowsOf(&s, 1, 0, func(int) time.Duration { return time.Second / 2 }, 2*72*3600)
	if len(got) < 200 || len(got) > 1000 {
		t.Errorf("got %d windows, want hundreds", len(got))
	}
	for _, w := range got {
		if w.took < shortestSteps/2 {
			t.Errorf("got %v for a window, want at least %v", w.took, shortestSteps/2)
		}
	}
}
