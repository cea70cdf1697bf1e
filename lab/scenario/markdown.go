package scenario

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	"github.com/stallspan/stallspan/internal/window"
)

// Mark returns the comments that enclose the tables of a name in a page.
func Mark(name string) (begin, end string) {
	return fmt.Sprintf("<!-- %s: written by make scenarios -->", name), fmt.Sprintf("<!-- end of %s -->", name)
}

// Markdown formats the score as tables. The windows that fail are only printed: they are of one run.
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
	return b.String()
}

// failures lists the faults of each window, and the void windows.
func (s *Score) failures(line func(string, ...any)) {
	none := true
	for _, r := range s.Cases {
		faults := r.faults()
		if len(faults) == 0 {
			continue
		}
		if none {
			line("| case | what | truth: busy, storage, CPU, other (%%) | found |\n|---|---|---|---|")
		}
		none = false
		line(
			"| %s-%d (%s) | %s | %s | %s |",
			r.Name,
			r.Seed,
			r.About,
			strings.Join(faults, "; "),
			percents(r.Truth.Parts),
			percents(r.Got.Parts),
		)
	}
	if none {
		line("nothing.")
	}
}

// faults returns all targets that a window misses, or why it is void.
func (r *Result) faults() (all []string) {
	if r.Void != "" {
		return []string{"void: " + r.Void}
	}
	say := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	t := Targets
	if !r.Right() {
		say("%s, and not %s", r.Got.Verdict, r.Label)
	}
	if r.Long() && r.Ledger() > t.Ledger {
		say("ledger off by %.1f points", 100*r.Ledger())
	}
	if r.Long() && r.BusyError() > t.Busy {
		say("GPU busy off by %.1f points", 100*r.BusyError())
	}
	if r.Label == window.StorageBound && r.Truth.Speedup > 0 {
		if off, ok := r.SpeedupError(); !ok {
			say("speed-up %.2f measured, none predicted", r.Truth.Speedup)
		} else if off > t.Speedup {
			say("speed-up %.2f measured, %.2f predicted (%.0f %% off)", r.Truth.Speedup, r.Got.Speedup, 100*off)
		}
	}
	if after := r.Got.VerdictAfter; after != nil && r.Right() && *after > t.Verdict {
		say("right after %.1f s", *after)
	}
	if after := r.Got.ChangeAfter; after != nil && *after > t.Verdict {
		say("right %.1f s after the change", *after)
	}
	if d := r.Got.Device; d != nil {
		all = append(all, d.faults()...)
	}
	return all
}

func (d *Device) faults() (all []string) {
	if d.OperationsError > 0 || d.BytesError > 0 {
		all = append(
			all,
			fmt.Sprintf("%d operations and %d bytes that are not the device's own", d.OperationsError, d.BytesError),
		)
	}
	for _, await := range [...]struct {
		of  string
		off *float64
	}{{"reads", d.AwaitError}, {"writes", d.WriteAwaitError}} {
		if await.off != nil && *await.off > Targets.Await {
			all = append(all, fmt.Sprintf("await of %s off by %.1f %%", await.of, 100**await.off))
		}
	}
	return all
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
