package compare

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/aclements/go-moremath/stats"

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
func Several(a, b []*Document) (*Comparison, *Runs, error) {
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

func spread(name string, runs []*Document) (Spread, error) {
	s := Spread{Least: math.Inf(1)}
	for i, d := range runs {
		duration, ok := d.duration()
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

// duration is that of the whole run, or the sum of all windows if the report has no run. It reports false for a run
// that was cut short.
func (d *Document) duration() (seconds float64, ok bool) {
	windows := d.Windows
	if d.Run != nil {
		windows = list[Window]{*d.Run}
	}
	for i := range windows {
		if windows[i].Unfinished {
			return 0, false
		}
		seconds += *windows[i].Duration
	}
	return seconds, true
}

// decides reports whether the test can find a difference between so many runs: whether all runs of A being faster than
// all of B is less likely by chance than the significance, on either side.
func decides(a, b int) bool {
	ways := 1.0
	for i := 1; i <= a; i++ {
		ways *= float64(b+i) / float64(i)
	}
	return 2/ways < significance
}

// test sets P and Change.
func (r *Runs) test() {
	p := 1.0
	result, err := stats.MannWhitneyUTest(r.A.Durations, r.B.Durations, stats.LocationDiffers)
	switch {
	case err == nil:
		p = min(1, result.P)
	case !errors.Is(err, stats.ErrSamplesEqual):
		return
	}
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
