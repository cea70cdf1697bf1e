package scenario

import (
	"math"
	"slices"

	"github.com/stallspan/stallspan/internal/window"
)

// Verdicts are the classes in the order in which they are shown.
var Verdicts = [...]window.Verdict{window.StorageBound, window.CPUBound, window.GPUBound, window.Mixed, window.Unknown}

// Score sums up results. Void results are in Cases and count nowhere else. Fields without data are absent.
type Score struct {
	Seed   *uint64   `json:"seed,omitempty"`   // that made all variants; absent if they are of several
	Shared bool      `json:"shared,omitempty"` // the jobs had no cgroup of their own
	Cases  []*Result `json:"cases"`
	Void   int       `json:"void"`
	Failed []string  `json:"failed,omitempty"` // attempts that could not run, with the reason; unknown in a replay
	Wanted []string  `json:"-"`                // cases that must have windows

	Confusion map[window.Verdict]map[window.Verdict]int `json:"confusion"` // count by label and verdict
	Precision map[window.Verdict]float64                `json:"precision"`
	Recall    map[window.Verdict]float64                `json:"recall"`

	FalseStorage int `json:"false_storage_on_busy_gpu"` // storage_bound where the label is gpu_bound

	LedgerP50  *float64 `json:"ledger_error_p50,omitempty"` // of windows of at least 2 s, as a share of the window
	LedgerP95  *float64 `json:"ledger_error_p95,omitempty"`
	LogP95     *float64 `json:"ledger_error_by_log_p95,omitempty"` // the same by the log alone
	SpeedupP50 *float64 `json:"speedup_error_p50,omitempty"`       // of storage-bound windows, relative
	SpeedupP90 *float64 `json:"speedup_error_p90,omitempty"`

	VerdictP50 *float64 `json:"verdict_after_p50_s,omitempty"` // of windows that were judged right
	VerdictMax *float64 `json:"verdict_after_max_s,omitempty"`
	ChangeP50  *float64 `json:"change_after_p50_s,omitempty"` // of windows around several phases
	ChangeMax  *float64 `json:"change_after_max_s,omitempty"`

	BusyMax  *float64 `json:"busy_error_max,omitempty"`  // of windows of at least 2 s, as a share of the window
	TruthP95 *float64 `json:"truth_error_p95,omitempty"` // duration - rerun - storage, as a share of the window
	// windows whose operations or bytes differ from the device's counters
	Inexact     int      `json:"device_inexact"`
	Devices     int      `json:"devices"`                   // windows compared with a device's counters
	AwaitMax    *float64 `json:"await_error_max,omitempty"` // of reads, relative
	Unpredicted int      `json:"speedup_missing"`           // storage-bound windows without a prediction

	WriteAwaitMax *float64 `json:"write_await_error_max,omitempty"` // of writes
}

// Sum returns the score of results.
func Sum(results []*Result) *Score {
	s := &Score{
		Cases: results, Confusion: map[window.Verdict]map[window.Verdict]int{},
		Precision: map[window.Verdict]float64{}, Recall: map[window.Verdict]float64{},
	}
	var valid []*Result
	for _, r := range results {
		if r.Void != "" {
			s.Void++
			continue
		}
		valid = append(valid, r)
	}
	s.Seed = madeBy(results)
	s.classes(valid)
	s.errors(valid)
	return s
}

// madeBy returns the seed that made all results' variants; nil if they are of several.
func madeBy(results []*Result) *uint64 {
	if len(results) == 0 {
		return nil
	}
	seed := Made(results[0].Seed)
	for _, r := range results {
		if Made(r.Seed) != seed {
			return nil
		}
	}
	return &seed
}

func (s *Score) classes(valid []*Result) {
	for _, r := range valid {
		row := s.Confusion[r.Label]
		if row == nil {
			row = map[window.Verdict]int{}
			s.Confusion[r.Label] = row
		}
		row[r.Got.Verdict]++
		if r.Label == window.GPUBound && r.Got.Verdict == window.StorageBound {
			s.FalseStorage++
		}
	}
	for _, v := range Verdicts {
		right, labelled, given := s.Confusion[v][v], 0, 0
		for _, w := range Verdicts {
			labelled += s.Confusion[v][w]
			given += s.Confusion[w][v]
		}
		if given > 0 {
			s.Precision[v] = float64(right) / float64(given)
		}
		if labelled > 0 {
			s.Recall[v] = float64(right) / float64(labelled)
		}
	}
}

func (s *Score) errors(valid []*Result) {
	var ledger, byLog, busy, speedup, after, change, truth, await, writes []float64
	for _, r := range valid {
		if r.Long() {
			ledger, byLog, busy = append(ledger, r.Ledger()), append(byLog, r.LedgerByLog()), append(busy, r.BusyError())
		}
		if r.Truth.Rerun != nil && r.Seconds > 0 {
			truth = append(truth, math.Abs(r.Truth.Unexplained)/r.Seconds)
		}
		if r.Label == window.StorageBound && r.Truth.Speedup > 0 {
			if off, ok := r.SpeedupError(); ok {
				speedup = append(speedup, off)
			} else {
				s.Unpredicted++
			}
		}
		if r.Right() && r.Got.VerdictAfter != nil {
			after = append(after, *r.Got.VerdictAfter)
		}
		if r.Got.ChangeAfter != nil {
			change = append(change, *r.Got.ChangeAfter)
		}
		if d := r.Got.Device; d != nil && !d.idle() {
			s.Devices++
			await, writes = appendKnown(await, d.AwaitError), appendKnown(writes, d.WriteAwaitError)
			if d.OperationsError > 0 || d.BytesError > 0 {
				s.Inexact++
			}
		}
	}
	s.LedgerP50, s.LedgerP95 = Percentile(ledger, 0.5), Percentile(ledger, 0.95)
	s.LogP95 = Percentile(byLog, 0.95)
	s.SpeedupP50, s.SpeedupP90 = Percentile(speedup, 0.5), Percentile(speedup, 0.9)
	s.VerdictP50, s.VerdictMax = Percentile(after, 0.5), Percentile(after, 1)
	s.ChangeP50, s.ChangeMax = Percentile(change, 0.5), Percentile(change, 1)
	s.BusyMax, s.TruthP95 = Percentile(busy, 1), Percentile(truth, 0.95)
	s.AwaitMax, s.WriteAwaitMax = Percentile(await, 1), Percentile(writes, 1)
}

func appendKnown(values []float64, v *float64) []float64 {
	if v == nil {
		return values
	}
	return append(values, *v)
}

// Percentile returns the smallest value that is at least as large as the share p of all values; nil without values.
func Percentile(values []float64, p float64) *float64 {
	if len(values) == 0 {
		return nil
	}
	sorted := slices.Sorted(slices.Values(values))
	i := int(math.Ceil(p*float64(len(sorted)))) - 1
	return &sorted[min(max(i, 0), len(sorted)-1)]
}
