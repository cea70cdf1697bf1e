package compare

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stallspan/stallspan/internal/explain"
)

func runsOf(durations ...float64) (runs []*explain.Document) {
	for _, d := range durations {
		runs = append(runs, &explain.Document{Run: &explain.Report{Kind: "custom", Duration: d},
			Windows: []*explain.Report{{Kind: "epoch", Duration: d}}})
	}
	return runs
}

func TestSeveralRuns(t *testing.T) {
	for _, test := range []struct {
		name   string
		a, b   []float64
		change Change
		p      float64 // -1 for none; of tables of the U distribution
		want   string
		slower bool // by more than 10 %
	}{
		{"all of B are slower", []float64{10, 11, 10.5, 10.2}, []float64{13, 14, 13.5, 15}, Slower, 2.0 / 70,
			"B is 1.33x slower: A took 10.3 s and B 13.8 s (medians of 4 and 4 runs, p = 0.029).", true},
		{"all of B are faster", []float64{13, 14, 13.5, 15, 16}, []float64{10, 11, 10.5, 10.2, 9}, Faster, 2.0 / 252,
			"B is 1.37x faster", false},
		{"mixed", []float64{10, 12, 14, 16}, []float64{11, 13, 15, 17}, Same, 0.6857, "No difference shows", false},
		{"equal", []float64{10, 10, 10, 10}, []float64{10, 10, 10, 10}, Same, 1, "No difference shows", false},
		{"sure, and small", []float64{10, 10.01, 10.02, 10.03}, []float64{10.1, 10.11, 10.12, 10.13}, Same, 2.0 / 70,
			"About the same", false},
		{"too few", []float64{10, 11, 12}, []float64{20, 21, 22}, Unknown, -1, "too few runs", true},
		{"one against many", []float64{10}, []float64{20, 21, 22, 23, 24, 25}, Unknown, -1, "too few runs", true},
	} {
		c, r, err := Several(runsOf(test.a...), runsOf(test.b...))
		if err != nil {
			t.Fatal(err)
		}
		p := -1.0
		if r.P != nil {
			p = *r.P
		}
		if r.Change != test.change || math.Abs(p-test.p) > 1e-3 || !strings.Contains(r.Finding, test.want) {
			t.Errorf("%s: got %s, p = %v, %s; want %s, %v, %s", test.name, r.Change, p, r.Finding, test.change, test.p,
				test.want)
		}
		if got := r.SlowerBy(0.1); got != test.slower {
			t.Errorf("%s: got slower %t, want %t", test.name, got, test.slower)
		}
		if len(c.Windows) != 1 {
			t.Errorf("%s: got %d windows of the median runs, want 1", test.name, len(c.Windows))
		}
	}
}

// Two runs a side never decide, and the sides may be of any size.
func TestDecides(t *testing.T) {
	for _, test := range []struct {
		a, b int
		want bool
	}{
		{1, 1, false}, {3, 3, false}, {4, 4, true}, {3, 5, true}, {2, 8, true}, {2, 7, false}, {1, 100, true}, {1, 38, false},
	} {
		if got := decides(test.a, test.b); got != test.want {
			t.Errorf("got %t for %d and %d runs, want %t", got, test.a, test.b, test.want)
		}
	}
}

// Of runs that do not differ, one in twenty at most is reported to differ.
func TestFalseDifferences(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	const rounds = 2000
	found := 0
	for range rounds {
		var sides [2][]float64
		for i := range sides {
			for range 6 {
				sides[i] = append(sides[i], 10*math.Exp(random.NormFloat64()*0.2))
			}
		}
		if _, r, err := Several(runsOf(sides[0]...), runsOf(sides[1]...)); err != nil {
			t.Fatal(err)
		} else if *r.P < significance {
			found++
		}
	}
	if share := float64(found) / rounds; share > 0.065 {
		t.Errorf("got a difference in %.1f %% of pairs without one, want 5 %% at most", share*100)
	}
}

func TestCutRun(t *testing.T) {
	runs := runsOf(1, 2)
	runs[1].Run.Unfinished = true
	if _, _, err := Several(runsOf(1), runs); err == nil || err.Error() != "run 2 of B was cut short: leave it out" {
		t.Errorf("got %v, want the run that was cut short", err)
	}
}

func TestMannWhitney(t *testing.T) {
	for _, test := range []struct {
		a, b []float64
		want float64
	}{
		{[]float64{19, 22, 16, 29, 24}, []float64{20, 11, 17, 12}, 14.0 / 126}, // as in the manual of scipy
		{[]float64{1, 2, 2}, []float64{2, 3, 3}, 6.0 / 20},
		// 3 of 20 choices have a rank sum of 7 or less
		{[]float64{0, 0, 0, 5}, []float64{0}, 1},
		{[]float64{1}, []float64{2}, 1},
		{[]float64{3, 3}, []float64{3, 3}, 1},
	} {
		for _, sides := range [][2][]float64{{test.a, test.b}, {test.b, test.a}} {
			if got := mannWhitney(sides[0], sides[1]); math.Abs(got-test.want) > 1e-12 {
				t.Errorf("%v: got p = %v, want %v", sides, got, test.want)
			}
		}
	}
}
