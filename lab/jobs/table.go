//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/lab/scenario"
)

const header = "job                  seed evidence window     s  truth: busy storage cpu other" +
	"   found: busy storage cpu other   error  label / verdict                  predicted measured  steal foreign (%)"

// line is a result for people. Parts are in percent.
func (r *result) line() string {
	verdict := fmt.Sprintf("%s / %s", orNone(string(r.Label)), r.Verdict)
	if r.Label != "" && !r.right() && r.Void == "" {
		verdict = "WRONG " + verdict
	}
	speed := "                  "
	if r.Cold && r.Measured > 0 {
		speed = fmt.Sprintf("%9.2f %8.2f", r.Predicted, r.Measured)
	}
	text := fmt.Sprintf("%-20s %4d %-8s %6s %5.1f   %s   %s   %5.1f  %-32s %s  %4.1f%% %.1f",
		r.Job, r.Seed, orNone(r.Evidence), r.Window, r.Seconds, percents(r.Truth), percents(r.Found), 100*r.Error, verdict,
		speed, 100*r.Steal, 100*r.Foreign)
	if r.Void != "" {
		text += "  void: " + r.Void
	} else if r.VoidSpeedup != "" {
		text += "  no speed-up: " + r.VoidSpeedup
	}
	return text
}

func orNone(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func percents(p scenario.Parts) string {
	t := max(p.Total(), 1e-9) / 100
	return fmt.Sprintf("%5.1f %5.1f %5.1f %5.1f", p.Busy/t, p.Storage/t, p.CPU/t, p.Other/t)
}

func lastLine(text string) string {
	return text[strings.LastIndex(text, "\n")+1:]
}

// summary sums up the results of one kind of evidence.
type summary struct {
	windows, void int
	counted       int // windows with a label
	wrong         []*result
	precision     map[window.Verdict]float64
	recall        map[window.Verdict]float64
	falseStorage  int
	ledger        []float64 // points
	speedup       []float64 // percent
	inRange       int       // speed-ups in the range that was predicted
}

func sum(results []*result) *summary {
	s := &summary{windows: len(results), precision: map[window.Verdict]float64{}, recall: map[window.Verdict]float64{}}
	labels, verdicts, right := map[window.Verdict]float64{}, map[window.Verdict]float64{}, map[window.Verdict]float64{}
	for _, r := range results {
		if r.Cold && r.Measured > 0 && r.VoidSpeedup == "" {
			s.speedup = append(s.speedup, 100*r.speedupError())
			if r.Low <= r.Measured && (r.Measured <= r.High || r.High == 0) {
				s.inRange++
			}
		}
		if r.Void != "" {
			s.void++
			continue
		}
		s.ledger = append(s.ledger, 100*r.Error)
		if r.Label == "" {
			continue
		}
		s.counted++
		labels[r.Label]++
		verdicts[r.Verdict]++
		if r.right() {
			right[r.Label]++
			continue
		}
		s.wrong = append(s.wrong, r)
		if r.Label == window.GPUBound && r.Verdict == window.StorageBound {
			s.falseStorage++
		}
	}
	for _, v := range scenario.Verdicts {
		if labels[v] > 0 {
			s.recall[v] = right[v] / labels[v]
		}
		if verdicts[v] > 0 {
			s.precision[v] = right[v] / verdicts[v]
		}
	}
	return s
}

// figures are the rows of the summary's table, with the aim of each.
func (s *summary) figures() [][3]string {
	rows := [][3]string{
		{"windows / void", fmt.Sprintf("%d / %d", s.windows, s.void), ""},
		{"wrong verdicts, of windows with a margin", fmt.Sprintf("%d of %d", len(s.wrong), s.counted), ""},
	}
	for _, v := range scenario.Verdicts {
		rows = append(rows, [3]string{
			fmt.Sprintf("precision and recall of %s", v), rate(s.precision, v) + " " + rate(s.recall, v), "0.97",
		})
	}
	return append(rows,
		[3]string{"storage_bound while the GPU was busy", fmt.Sprint(s.falseStorage), "0"},
		[3]string{"ledger error, median", of(s.ledger, 0.5, "points"), "0.5 points"},
		[3]string{"ledger error, 95 of 100 windows", of(s.ledger, 0.95, "points"), "2.5 points"},
		[3]string{"speed-up error, median", of(s.speedup, 0.5, "%"), "3 %"},
		[3]string{"speed-up error, 90 of 100 windows", of(s.speedup, 0.9, "%"), "10 %"},
		[3]string{"speed-ups in the predicted range", fmt.Sprintf("%d of %d", s.inRange, len(s.speedup)), "90 of 100"},
		[3]string{"windows with a speed-up", fmt.Sprint(len(s.speedup)), ""},
	)
}

func rate(rates map[window.Verdict]float64, v window.Verdict) string {
	if r, ok := rates[v]; ok {
		return fmt.Sprintf("%.2f", r)
	}
	return "-"
}

func of(values []float64, share float64, unit string) string {
	p := scenario.Percentile(values, share)
	if p == nil {
		return "-"
	}
	return fmt.Sprintf("%.1f %s", *p, unit)
}

// markdown is the table of the figures, a column for each kind of evidence.
func markdown(all []*result, evidences []string) string {
	var b strings.Builder
	b.WriteString("| figure |")
	var columns [][][3]string
	for _, e := range evidences {
		fmt.Fprintf(&b, " %s |", e)
		columns = append(columns, sum(through(all, e)).figures())
	}
	b.WriteString(" aim |\n|---|" + strings.Repeat("---|", len(evidences)+1) + "\n")
	for i, row := range columns[0] {
		fmt.Fprintf(&b, "| %s |", row[0])
		for _, c := range columns {
			fmt.Fprintf(&b, " %s |", c[i][1])
		}
		fmt.Fprintf(&b, " %s |\n", row[2])
	}
	return b.String()
}

func through(all []*result, evidence string) (some []*result) {
	for _, r := range all {
		if r.Wanted == evidence {
			some = append(some, r)
		}
	}
	return some
}

// The aims of a single window, as in the table of figures.
const (
	aimLedger  = 0.025
	aimSpeedup = 0.10
)

// misses reports whether a window is what a reader should look at.
func (r *result) misses() bool {
	speedup := r.Cold && r.Measured > 0 && r.VoidSpeedup == "" && r.speedupError() > aimSpeedup
	return r.Void == "" && (r.Error > aimLedger || r.Label != "" && !r.right() || speedup)
}

// byWindow is the table of the windows that miss an aim.
func byWindow(all []*result) string {
	var b strings.Builder
	b.WriteString("| job, seed, window | evidence | truth: busy, storage, CPU, other (%) | found | error | label " +
		"| verdict | speed-up: measured, predicted |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|\n")
	for _, r := range all {
		if !r.misses() {
			continue
		}
		speed := ""
		if r.Cold && r.VoidSpeedup == "" && r.Measured > 0 {
			speed = fmt.Sprintf("%.2f %.2f", r.Measured, r.Predicted)
		}
		fmt.Fprintf(&b, "| %s, %d, %s | %s | %s | %s | %.1f | %s | %s | %s |\n", r.Job, r.Seed, r.Window, orNone(r.Evidence),
			percents(r.Truth), percents(r.Found), 100*r.Error, orNone(string(r.Label)), r.Verdict, speed)
	}
	return b.String()
}

// finish prints the summary. The exit code is 1 if a job failed or nothing counted, and with -short if more than one
// verdict was wrong: single windows are too few for rates. Those of unseen do not decide.
func (o *options) finish(results []*result, failed int, evidences []string) (int, error) {
	fmt.Printf("\n%s\n%s\n", markdown(results, evidences), byWindow(results))
	if o.markdown != "" {
		if err := scenario.Rewrite(o.markdown, "jobs summary", markdown(results, evidences)); err != nil {
			return 1, err
		}
	}
	if failed > 0 {
		return 1, fmt.Errorf("%d jobs could not run: see the lines that begin with FAILED", failed)
	}
	if !slices.ContainsFunc(results, func(r *result) bool { return r.Void == "" }) {
		return 1, errors.New("all windows are void, so nothing is proved: run it again on an idle machine")
	}
	wrong := sum(through(results, evidences[0])).wrong
	all := len(wrong)
	wrong = slices.DeleteFunc(wrong, (*result).unseen)
	if unseen := all - len(wrong); unseen > 0 {
		fmt.Fprintln(os.Stderr, unseen, "windows that waited for the network are unknown: this kernel gives no events")
	}
	if o.short && len(wrong) > 1 {
		fmt.Fprintln(os.Stderr, len(wrong), "wrong verdicts")
		return 1, nil
	}
	return 0, nil
}
