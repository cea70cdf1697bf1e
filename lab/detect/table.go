//go:build linux

package main

import (
	"fmt"
	"strings"
)

// line is a case in one line.
func (r *result) line() string {
	if r.Failed != "" {
		return fmt.Sprintf("%-20s FAILED: %s", r.Case, r.Failed)
	}
	text := fmt.Sprintf("%-20s %-10s", r.Case, r.Disk)
	for _, kind := range kinds {
		found, wrong := r.of(kind)
		if r.Labels[kind]+found+wrong > 0 {
			text += fmt.Sprintf("  %s %d of %d, %d false", kind, found, r.Labels[kind], wrong)
		}
	}
	return text
}

// of returns how many windows of a kind were right and wrong.
func (r *result) of(kind string) (found, wrong int) {
	for _, p := range r.Pairs {
		if p.Kind == kind {
			found++
		}
	}
	for _, f := range r.False {
		if f.Kind == kind {
			wrong++
		}
	}
	return found, wrong
}

// figures is the table of the score.
func (s *score) figures() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("| figure | %s | aim |", strings.Join(kinds[:], " | "))
	line("|---|---|---|---|")
	row := func(what, aim string, value func(*kindScore) string) {
		cells := make([]string, len(kinds))
		for i, kind := range kinds {
			cells[i] = value(s.Kinds[kind])
		}
		line("| %s | %s | %s |", what, strings.Join(cells, " | "), aim)
	}
	some := func(n int, text string, args ...any) string {
		if n == 0 {
			return "-"
		}
		return fmt.Sprintf(text, args...)
	}
	row("labels", "", func(k *kindScore) string { return fmt.Sprint(k.Labels) })
	row("found", "", func(k *kindScore) string { return fmt.Sprint(k.Found) })
	row("false windows", "", func(k *kindScore) string { return fmt.Sprint(k.False) })
	row("precision", "0.95", func(k *kindScore) string { return some(k.Found+k.False, "%.2f", k.Precision) })
	row("recall", "0.95 of loads", func(k *kindScore) string { return some(k.Labels, "%.2f", k.Recall) })
	times := func(of func(*kindScore) quantiles) func(*kindScore) string {
		return func(k *kindScore) string {
			q := of(k)
			return some(q.Count, "%.2f, %.2f s, %.0f %%", q.Median, q.P90, 100*q.Within)
		}
	}
	const aim = "0.5 s in 90 of 100"
	row("error of the begin: median, 90 of 100, within 0.5 s", aim, times(func(k *kindScore) quantiles { return k.Begin }))
	row("error of the end", aim, times(func(k *kindScore) quantiles { return k.End }))
	row("both within 0.5 s", "90 %", func(k *kindScore) string { return some(k.Found, "%.0f %%", 100*k.Both) })
	row("false windows per hour of programs without any", "", func(k *kindScore) string {
		hourly := 3600 * ratio(float64(k.NegFalse), k.Negative)
		return some(int(k.Negative), "%.0f (%d in %.0f s)", hourly, k.NegFalse, k.Negative)
	})
	line("\nOf loads: ")
	line("\n| figure | measured |\n|---|---|")
	line("| time with a label of a phase for which a phase is reported | %s |",
		some(int(10*s.Phases.Labelled), "%.0f %% of %.0f s", 100*ratio(s.Phases.Named, s.Phases.Labelled), s.Phases.Labelled))
	line("| of this, with the right one | %s |",
		some(int(10*s.Phases.Named), "%.0f %%", 100*ratio(s.Phases.Right, s.Phases.Named)))
	line("| ledger error: median, 90 of 100 | %s |",
		some(s.Ledgers.Count, "%.1f, %.1f points of %d loads", 100*s.Ledgers.Median, 100*s.Ledgers.P90, s.Ledgers.Count))
	line("| clear verdicts by the log; right, without one, wrong | %d; %d, %d, %d |", s.Verdicts.Labels, s.Verdicts.Right,
		s.Verdicts.Unknown, s.Verdicts.Labels-s.Verdicts.Right-s.Verdicts.Unknown)
	line("| aborted loads; reported as unfinished | %d; %d |", s.Aborted, s.Reported)
	line("| cases that could not run | %d |", s.Failed)
	return b.String()
}

// casesTable lists the cases, and what is wrong in each.
func casesTable(results []*result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| case | storage | found of labels: %s | missed | false |\n|---|---|---|---|---|\n",
		strings.Join(kinds[:], ", "))
	for _, r := range results {
		if r.Failed != "" {
			fmt.Fprintf(&b, "| %s | %s | could not run | | |\n", r.Case, r.Disk)
			continue
		}
		var counts, lacks, wrong []string
		for _, kind := range kinds {
			found, _ := r.of(kind)
			counts = append(counts, fmt.Sprintf("%d of %d", found, r.Labels[kind]))
		}
		for _, m := range r.Missed {
			lacks = append(lacks, fmt.Sprintf("%s of %.1f s", m.Kind, m.Seconds))
		}
		for _, f := range r.False {
			text := fmt.Sprintf("%s of %.1f s", f.Kind, f.Seconds)
			if f.Open {
				text += " (open)"
			}
			if f.Again {
				text += " (a second one)"
			}
			wrong = append(wrong, text)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", r.Case, r.Disk, strings.Join(counts, ", "), strings.Join(lacks, "; "),
			strings.Join(wrong, "; "))
	}
	return b.String()
}
