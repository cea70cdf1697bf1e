package scenario

import (
	"bytes"
	"fmt"
	"os"
	"strings"
)

// Mark is what stands around the tables of a name in a page.
func Mark(name string) (begin, end string) {
	return fmt.Sprintf("<!-- %s: written by make scenarios -->", name), fmt.Sprintf("<!-- end of %s -->", name)
}

// Markdown is the score as tables.
func (s *Score) Markdown() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("| label | %s | recall |", strings.Join(names("%s"), " | "))
	line("|---|---|---|---|---|---|---|")
	for _, v := range Verdicts {
		row := ""
		for _, w := range Verdicts {
			row += fmt.Sprintf(" %d |", s.Confusion[v][w])
		}
		line("| %s |%s %s |", v, row, of(s.Recall, v))
	}
	row := ""
	for _, v := range Verdicts {
		row += " " + of(s.Precision, v) + " |"
	}
	line("| precision |%s |", row+" ")
	line("\n| figure | measured | aim |\n|---|---|---|")
	for _, f := range s.figures() {
		line("| %s | %s | %s |", f.what, f.value, f.target)
	}
	line("\nWhat fails:\n")
	s.failures(line)
	return b.String()
}

// failures lists every wrong verdict, every ledger that is too far off, and what counts for nothing.
func (s *Score) failures(line func(string, ...any)) {
	none := true
	table := func(what, of string) {
		if none {
			line("| case | what | truth: busy, storage, CPU, other (%%) | found |\n|---|---|---|---|")
		}
		none = false
		line("| %s | %s", what, of)
	}
	for _, r := range s.Cases {
		what := ""
		speedup, predicted := r.SpeedupError()
		switch {
		case r.Void != "":
			what = "void: " + r.Void
		case !r.Right():
			what = fmt.Sprintf("%s, and not %s", r.Got.Verdict, r.Label)
		case r.Long() && r.Ledger() > Targets.Ledger:
			what = fmt.Sprintf("ledger off by %.1f points", 100*r.Ledger())
		case predicted && r.Label == "storage_bound" && speedup > Targets.Speedup:
			what = fmt.Sprintf("speed-up %.2f measured, %.2f predicted", r.Truth.Speedup, r.Got.Speedup)
		default:
			continue
		}
		table(fmt.Sprintf("%s-%d (%s)", r.Name, r.Seed, r.About),
			fmt.Sprintf("%s | %s | %s |", what, percents(r.Truth.Parts), percents(r.Got.Parts)))
	}
	if none {
		line("nothing.")
	}
}

// Rewrite puts text between the marks of a name in a page.
func Rewrite(page, name, text string) error {
	old, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	begin, end := Mark(name)
	from := bytes.Index(old, []byte(begin))
	to := bytes.Index(old, []byte(end))
	if from < 0 || to < from {
		return fmt.Errorf("%s has no lines %q and %q to write between", page, begin, end)
	}
	out := append([]byte{}, old[:from+len(begin)]...)
	out = append(out, "\n\n"+text+"\n"...)
	return os.WriteFile(page, append(out, old[to:]...), 0o644)
}
