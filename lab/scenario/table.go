package scenario

import (
	"fmt"
	"io"
	"strings"

	"github.com/stallspan/stallspan/internal/window"
)

// Line formats a result in one line: name, label, verdict, true and reported parts of the ledger, measured and
// predicted speed-up, seconds.
func (r *Result) Line() string {
	mark := "ok"
	switch {
	case r.Void != "":
		mark = "void"
	case !r.Right():
		mark = "WRONG"
	case r.Long() && r.Ledger() > Targets.Ledger:
		mark = "far"
	}
	line := fmt.Sprintf("%-5s %-32s %-13s %-13s %s | %s  off %4.1f", mark, fmt.Sprintf("%s-%d", r.Name, r.Seed), r.Label,
		r.Got.Verdict, percents(r.Truth.Parts), percents(r.Got.Parts), 100*r.Ledger())
	if r.Truth.Speedup > 0 {
		line += fmt.Sprintf("  x%.2f|%.2f", r.Truth.Speedup, r.Got.Speedup)
	}
	line += fmt.Sprintf("  %.1f s  %s", r.Seconds, r.About)
	if r.Void != "" {
		line += "  (" + r.Void + ")"
	}
	return line
}

// percents formats the shares of busy, storage, cpu and other.
func percents(p Parts) string {
	s := p.shares()
	return fmt.Sprintf("%3.0f %3.0f %3.0f %3.0f", 100*s.Busy, 100*s.Storage, 100*s.CPU, 100*s.Other)
}

// LineHeader returns the header for lines.
func LineHeader() string {
	return "      case                             label         verdict       " +
		"truth: busy storage cpu other | found, %  speed-up  length"
}

// Print writes the score as a table.
func (s *Score) Print(out io.Writer) {
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(out, format+"\n", args...) }
	say("")
	say("%-14s %s  recall", "label", strings.Join(names(" %13s"), ""))
	for _, v := range Verdicts {
		row := fmt.Sprintf("%-14s ", v)
		for _, w := range Verdicts {
			row += fmt.Sprintf(" %13d", s.Confusion[v][w])
		}
		say("%s  %s", row, of(s.Recall, v))
	}
	row := fmt.Sprintf("%-14s ", "precision")
	for _, v := range Verdicts {
		row += fmt.Sprintf(" %13s", of(s.Precision, v))
	}
	say("%s\n", row)
	for _, f := range s.figures() {
		say("%-52s %s", f.what, f.value)
	}
	say("\nWhat fails:\n")
	s.failures(say)
}

func names(format string) (out []string) {
	for _, v := range Verdicts {
		out = append(out, fmt.Sprintf(format, v))
	}
	return out
}

func of(rates map[window.Verdict]float64, v window.Verdict) string {
	if rate, ok := rates[v]; ok {
		return fmt.Sprintf("%.3f", rate)
	}
	return "-"
}

// figure is one line of a score.
type figure struct{ what, value, target string }

func (s *Score) figures() []figure {
	scaled := func(v *float64, by float64, unit string) string {
		if v == nil {
			return "-"
		}
		return fmt.Sprintf("%.1f %s", by**v, unit)
	}
	points := func(v *float64) string { return scaled(v, 100, "points") }
	per := func(v *float64) string { return scaled(v, 100, "%") }
	return []figure{
		{"storage_bound where the GPU was busy", fmt.Sprint(s.FalseStorage), "0"},
		{"ledger error, median", points(s.LedgerP50), ""},
		{"ledger error, 95 of 100 windows", points(s.LedgerP95), "5 points"},
		{"the same by the log alone, 95 of 100 windows", points(s.LogP95), ""},
		{"speed-up error, median", per(s.SpeedupP50), ""},
		{"speed-up error, 90 of 100 storage-bound windows", per(s.SpeedupP90), "10 %"},
		{"GPU busy error, largest", points(s.BusyMax), "2 points"},
		{"time to a lasting right verdict, median", scaled(s.VerdictP50, 1, "s"), ""},
		{"time to a lasting right verdict, longest", scaled(s.VerdictMax, 1, "s"), "10 s"},
		{"the same from a change within a window, median", scaled(s.ChangeP50, 1, "s"), ""},
		{"the same from a change within a window, longest", scaled(s.ChangeMax, 1, "s"), "10 s"},
		{"windows whose operations or bytes differ from the device's", fmt.Sprintf("%d of %d", s.Inexact, s.Devices), "0"},
		{"await error of reads, largest", per(s.AwaitMax), "1 %"},
		{"await error of writes, largest", per(s.WriteAwaitMax), "1 %"},
		{"the truth's own error, 95 of 100 windows", points(s.TruthP95), ""},
		{"windows that count / void", fmt.Sprintf("%d / %d", len(s.Cases)-s.Void, s.Void), ""},
	}
}
