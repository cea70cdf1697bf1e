package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/stallspan/stallspan/internal/explain"
)

// significance is the probability of a difference by chance below which a difference counts as one.
const significance = 0.05

// Runs compares several runs of each side by their durations. Windows of one run are not independent of each other, so
// a run counts once.
type Runs struct {
	A       Spread   `json:"a"`
	B       Spread   `json:"b"`
	P       *float64 `json:"p,omitempty"` // of the Mann-Whitney U test, two-sided; absent with too few runs
	Change  Change   `json:"change"`      // Unknown with too few runs
	Finding string   `json:"finding"`     // one sentence
}

// Spread is the durations of the runs of one side, in seconds.
type Spread struct {
	Durations []float64 `json:"durations_s"` // in the order of the reports
	Median    float64   `json:"median_s"`
	Least     float64   `json:"least_s"`
	Most      float64   `json:"most_s"`

	middle int // the report with the median, or with the lower one of two
}

// Several compares several reports of each side. The Comparison is that of the runs with the median durations.
func Several(a, b []*explain.Document) (*Comparison, *Runs, error) {
	r := &Runs{Change: Unknown}
	var err error
	if r.A, err = spread("A", a); err != nil {
		return nil, nil, err
	}
	if r.B, err = spread("B", b); err != nil {
		return nil, nil, err
	}
	if decides(len(a), len(b)) {
		r.test()
	}
	r.Finding = r.finding()
	return Compare(a[r.A.middle], b[r.B.middle]), r, nil
}

func spread(name string, runs []*explain.Document) (Spread, error) {
	s := Spread{Least: math.Inf(1)}
	for i, d := range runs {
		duration, ok := durationOf(d)
		if !ok {
			return s, fmt.Errorf("run %d of %s was cut short: leave it out", i+1, name)
		}
		s.Durations = append(s.Durations, duration)
		s.Least, s.Most = min(s.Least, duration), max(s.Most, duration)
	}
	order := make([]int, len(runs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(s.Durations[i], s.Durations[j]) })
	s.middle = order[(len(order)-1)/2]
	s.Median = (s.Durations[s.middle] + s.Durations[order[len(order)/2]]) / 2
	return s, nil
}

// durationOf is that of the whole run, or the sum of all windows if the report has no run. It reports false for a run
// that was cut short.
func durationOf(d *explain.Document) (seconds float64, ok bool) {
	windows := d.Windows
	if d.Run != nil {
		windows = []*explain.Report{d.Run}
	}
	for _, w := range windows {
		if w.Unfinished {
			return 0, false
		}
		seconds += w.Duration
	}
	return seconds, true
}

// decides reports whether the test can find a difference between so many runs: whether all runs of A being faster than
// all of B is less likely by chance than the significance, on either side.
func decides(a, b int) bool {
	return 2/ways(a, b) < significance
}

// ways is the number of ways to divide values into two sides of these sizes.
func ways(a, b int) float64 {
	n := 1.0
	for i := 1; i <= a; i++ {
		n *= float64(b+i) / float64(i)
	}
	return n
}

// mannWhitney is the probability that two samples of the same values differ by at least as much as a and b, in either
// direction. It counts the ways to divide all values whose ranks add up to as little as those of the lower side.
func mannWhitney(a, b []float64) float64 {
	all := slices.Sorted(slices.Values(slices.Concat(a, b)))
	twiceRank := func(value float64) int { // equal values share the mean of their ranks
		first, _ := slices.BinarySearch(all, value)
		after := first
		for after < len(all) && all[after] == value {
			after++
		}
		return first + 1 + after
	}
	sum := func(values []float64) (ranks int) {
		for _, v := range values {
			ranks += twiceRank(v)
		}
		return ranks
	}
	lower := a
	if sum(a)*len(b) > sum(b)*len(a) {
		lower = b
	}
	most := sum(lower)
	count := make([][]float64, len(lower)+1) // by how many values are chosen, and the sum of their ranks
	for i := range count {
		count[i] = make([]float64, most+1)
	}
	count[0][0] = 1
	for _, v := range all {
		rank := twiceRank(v)
		for n := len(lower); n > 0; n-- {
			for total := rank; total <= most; total++ {
				count[n][total] += count[n-1][total-rank]
			}
		}
	}
	low := 0.0
	for _, n := range count[len(lower)] {
		low += n
	}
	return min(1, 2*low/ways(len(a), len(b)))
}

// test sets P and Change.
func (r *Runs) test() {
	p := mannWhitney(r.A.Durations, r.B.Durations)
	r.P, r.Change = &p, Same
	if p < significance {
		r.Change = change(r.A.Median, r.B.Median)
	}
}

func (r *Runs) finding() string {
	medians := fmt.Sprintf("A took %s and B %s (medians of %d and %d runs", explain.Duration(r.A.Median),
		explain.Duration(r.B.Median), len(r.A.Durations), len(r.B.Durations))
	switch {
	case r.P == nil:
		return medians + "). That is too few runs to separate a difference from chance: take at least four of each."
	case r.Change == Same && *r.P >= significance:
		return fmt.Sprintf("No difference shows: %s, p = %.2g).", medians, *r.P)
	case r.Change == Same:
		return fmt.Sprintf("About the same: %s, p = %.2g).", medians, *r.P)
	}
	longer, shorter := max(r.A.Median, r.B.Median), min(r.A.Median, r.B.Median)
	return fmt.Sprintf("B is %s %s: %s, p = %.2g).", times(longer, shorter), r.Change, medians, *r.P)
}

// SlowerBy reports whether B's median is more than 1 + share times that of A, and at least Grain longer. A difference
// that the test does not find does not count; with too few runs the medians decide.
func (r *Runs) SlowerBy(share float64) bool {
	return r.Change != Same && r.B.Median > r.A.Median*(1+share) && r.B.Median-r.A.Median >= Grain
}
