package scenario

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stallspan/stallspan/internal/window"
)

// Targets are what a full run must reach.
var Targets = struct {
	Class   float64 // precision and recall of storage_bound, cpu_bound and gpu_bound, at least
	Ledger  float64 // the ledger's error for 95 of 100 windows, as a share of the window
	Speedup float64 // the speed-up's for 90 of 100 storage-bound windows, relative
	Busy    float64 // the accelerator's busy time, as a share of the window
	Await   float64 // relative
	Verdict float64 // seconds until the verdict is right
}{Class: 0.95, Ledger: 0.05, Speedup: 0.1, Busy: 0.02, Await: 0.01, Verdict: 10}

// Missed returns a line for each target that the score misses. A target without data is missed, too.
func (s *Score) Missed() (missed []string) {
	say := func(format string, args ...any) { missed = append(missed, fmt.Sprintf(format, args...)) }
	t := Targets
	for _, v := range [...]window.Verdict{window.StorageBound, window.CPUBound, window.GPUBound} {
		if p, ok := s.Precision[v]; !ok || p < t.Class {
			say("precision of %s: %s, at least %.2f is wanted", v, number(p, ok), t.Class)
		}
		if p, ok := s.Recall[v]; !ok || p < t.Class {
			say("recall of %s: %s, at least %.2f is wanted", v, number(p, ok), t.Class)
		}
	}
	if s.FalseStorage > 0 {
		say("%d windows with a busy GPU were called storage_bound", s.FalseStorage)
	}
	over := func(what string, v *float64, most float64) {
		if v == nil {
			say("%s: not measured", what)
		} else if *v > most {
			say("%s: %.3f, at most %.3f is wanted", what, *v, most)
		}
	}
	over("ledger error, p95", s.LedgerP95, t.Ledger)
	over("speed-up error, p90", s.SpeedupP90, t.Speedup)
	over("GPU busy error, largest", s.BusyMax, t.Busy)
	over("await error of reads, largest", s.AwaitMax, t.Await)
	over("await error of writes, largest", s.WriteAwaitMax, t.Await)
	over("seconds to the verdict, most", s.VerdictMax, t.Verdict)
	over("seconds from a change within a window to its verdict, most", s.ChangeMax, t.Verdict)
	if s.Inexact > 0 {
		say("%d of %d windows did not have the device's own operations and bytes", s.Inexact, s.Devices)
	}
	if s.Unpredicted > 0 {
		say("%d storage-bound windows had no predicted speed-up", s.Unpredicted)
	}
	return append(missed, s.uncounted()...)
}

// uncounted returns the cases and labels without a window that counts: nothing is proved about them.
func (s *Score) uncounted() (missed []string) {
	type kind struct {
		name  string
		label window.Verdict
	}
	var kinds []kind // in the order of the results
	all, counted := map[kind]int{}, map[kind]bool{}
	cases, labels := map[string]bool{}, map[window.Verdict]bool{}
	for _, r := range s.Cases {
		k := kind{r.Name, r.Label}
		if all[k] == 0 {
			kinds = append(kinds, k)
		}
		all[k]++
		name, _, _ := strings.Cut(r.Name, "/")
		cases[name] = true
		if r.Void == "" {
			counted[k], labels[r.Label] = true, true
		}
	}
	absent := slices.DeleteFunc(slices.Clone(s.Wanted), func(name string) bool { return cases[name] })
	if len(absent) > 0 {
		missed = append(missed, "no window at all of "+strings.Join(absent, ", "))
	}
	for _, k := range kinds {
		if !counted[k] {
			missed = append(missed, fmt.Sprintf("%s as %s: none of %d windows counts", k.name, k.label, all[k]))
		}
	}
	for _, v := range Verdicts {
		if !labels[v] {
			missed = append(missed, fmt.Sprintf("no window that is %s counts", v))
		}
	}
	return missed
}

func number(v float64, ok bool) string {
	if !ok {
		return "not measured"
	}
	return fmt.Sprintf("%.3f", v)
}
