package agent

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/agent/internal/cli"
	"github.com/stallspan/stallspan/internal/state/baseline"
)

// compared runs a shell script under stallspan run with a file of baselines, and returns the report.
func compared(t *testing.T, db, script string, args ...string) *reportDocument {
	t.Helper()
	report := filepath.Join(t.TempDir(), "report.json")
	args = append([]string{"run", "--name", "job", "--baseline", db, "--report", report, "--epoch-pattern", `EPOCH (\d+)`},
		args...)
	v := stallspan(t, append(args, "--", "sh", "-c", script)...)
	if code := v.run(); code != 0 {
		t.Fatalf("exit code %d: %s%s", code, v.out.String(), v.err.String())
	}
	text, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	var d reportDocument
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	return &d
}

// largest returns the entry with the most durations. On a busy machine, the device of a load may be unknown in time:
// such a load has another entry.
func largest(t *testing.T, db string) *baseline.Entry {
	t.Helper()
	all, err := baseline.List(db)
	if err != nil || len(all) == 0 {
		t.Fatalf("got %+v, %v, want some entries", all, err)
	}
	found := &all[0]
	for i := range all {
		if len(all[i].Durations) > len(found.Durations) {
			found = &all[i]
		}
	}
	return found
}

// tooLong returns a sleep that is slow by the baseline.
func tooLong(e *baseline.Entry) string {
	usual, _ := e.Baseline()
	return fmt.Sprintf("sleep %.3f", (usual.Limit(0) + 200*time.Millisecond).Seconds())
}

// Eight loads are learned, and a later one of another process is slow.
func TestLoadThatTookLonger(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	model, db := filepath.Join(folder, "model.bin"), filepath.Join(folder, "state/baseline.json")
	if err := os.WriteFile(model, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	load := func(sleep string) string {
		return fmt.Sprintf("%s=stallspan %s mark run --kind model_load --model llama --path %s -- %s\n", actAs, os.Args[0],
			model, sleep)
	}
	d := compared(t, db, strings.Repeat(load("sleep 0.1"), 8))
	if len(d.Windows) != 8 || d.Windows[4].Baseline != nil {
		t.Fatalf("got %+v, want 8 windows, without a baseline for the fifth", d.Windows)
	}
	e := largest(t, db)
	if len(e.Durations) < baseline.MinCount || e.Key.Name() != "llama" || e.Key.Temperature() != baseline.Warm {
		t.Fatalf("%s: got %d, want warm loads of llama, at least the minimum count", e.Key, len(e.Durations))
	}
	d = compared(t, db, load(tooLong(e)))
	for range 5 { // until it has the same key
		if d.Windows[0].Baseline != nil {
			break
		}
		d = compared(t, db, load(tooLong(e)))
	}
	w := d.Windows[0]
	if !w.Slow || w.SlownessReason != "baseline" || !strings.Contains(w.Finding,
		fmt.Sprintf("is usual (p95 of %d loads)", len(e.Durations))) {
		t.Errorf("got slow %v by %q, %s; want slow by the baseline", w.Slow, w.SlownessReason, w.Finding)
	}
	if again := largest(t, db); again.Slow != e.Slow+1 || len(again.Durations) != len(e.Durations) {
		t.Errorf("got %+v, want one more slow load and no more durations", again)
	}
	if d := compared(t, db, load("sleep 0.01"), "--slow-load", "1ms"); d.Windows[0].SlownessReason != "threshold" ||
		!strings.Contains(d.Windows[0].Finding, "over the configured limit of 1 ms") {
		t.Errorf("got %+v, want a slow window over the threshold of 1 ms", d.Windows[0])
	}
}

func TestEpochThatTookLonger(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "baseline.json")
	compared(t, db, "for i in 1 2 3 4 5 6 7; do echo EPOCH $i; sleep 0.05; done")
	e := largest(t, db)
	late := "echo EPOCH 1; sleep 0.05; echo EPOCH 2; " + tooLong(e) + "; echo EPOCH 3"
	d := compared(t, db, late)
	if w := d.Windows[1]; e.Key != "epoch/job" || w.SlownessReason != "baseline" {
		t.Errorf("got %s slow by %q, %s; want epoch/job slow by the baseline", e.Key, w.SlownessReason, w.Finding)
	}
	if d := compared(t, "off", late); d.Windows[1].Slow || d.Windows[1].Baseline != nil {
		t.Errorf("without a file: got %+v, want no baseline", d.Windows[1])
	}
}

// The last epoch includes the end of the program. If only ends of epochs are printed, the first one includes its start.
func TestEpochsAtTheEndsAreNotCompared(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "baseline.json")
	d := compared(t, db, "for i in 1 2 3 4 5 6 7; do echo EPOCH $i; sleep 0.1; done")
	e := largest(t, db)
	if len(e.Durations) != 5 || len(d.Windows) != 7 || d.Windows[6].Baseline != nil {
		t.Fatalf("got %+v, %+v, want 5 learned epochs after the first of 7, and no baseline for the last one",
			e, d.Windows)
	}
	d = compared(t, db, "echo EPOCH 1; "+tooLong(e))
	if w := d.Windows[0]; w.Slow || w.Baseline != nil || w.Unfinished {
		t.Errorf("got %+v, want a window that is complete, not slow and without a baseline", w)
	}
	if again := largest(t, db); len(again.Durations) != 5 || again.Slow != 0 {
		t.Errorf("got %+v, want 5 durations and none slow", again)
	}
	// Only the end of the first epoch is printed. The second one is between two lines, and is compared.
	ends := "echo 'Epoch 1 | train loss 0.4'; sleep 0.1; echo 'Epoch 2 | train loss 0.3'"
	report := filepath.Join(t.TempDir(), "report.json")
	v := stallspan(t, "run", "--name", "job", "--baseline", db, "--report", report, "--", "sh", "-c", tooLong(e)+"; "+ends)
	if code := v.run(); code != 0 {
		t.Fatalf("exit code %d: %s", code, v.err.String())
	}
	w := readReport(t, report).Windows
	if len(w) != 2 || w[0].Slow || w[0].Baseline != nil || w[1].Baseline == nil {
		t.Errorf("got %+v, want two windows, the second one with a baseline, neither slow", w)
	}
}

// Baselines do not learn from a load that failed.
func TestFailedLoadsAreNotLearned(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	db := filepath.Join(folder, "baseline.json")
	load := fmt.Sprintf("%s=stallspan %s mark run --kind model_load --model bad -- sh -c 'exit 1'\n", actAs, os.Args[0])
	d := compared(t, db, strings.Repeat(load, 6)+"true")
	if all, err := baseline.List(db); err != nil || len(all) != 0 || len(d.Windows) != 6 || !d.Windows[0].Unfinished {
		t.Errorf("got %+v, %v, %+v, want no entry, and 6 windows that are cut", all, err, d.Windows)
	}
}

// A file that cannot be used is one problem in the report, and the run continues.
func TestDamagedBaselines(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "baseline.json")
	if err := os.WriteFile(db, []byte("no database"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := compared(t, db, "echo EPOCH 1; sleep 0.05; echo EPOCH 2")
	kept, err := filepath.Glob(db + ".corrupt-*")
	if err != nil || len(kept) != 1 {
		t.Fatalf("got %q, %v, want one renamed file", kept, err)
	}
	reported := 0
	for _, problem := range d.Problems {
		if strings.Contains(problem, kept[0]) {
			reported++
		}
	}
	if e := largest(t, db); reported != 1 || e.Key != "first/job" {
		t.Errorf("got %d of the problems %q and %s, want 1 and first/job", reported, d.Problems, e.Key)
	}
	if d := compared(t, t.TempDir(), "echo EPOCH 1"); len(d.Windows) != 1 ||
		!strings.Contains(strings.Join(d.Problems, "\n"), "it is not a regular file") {
		t.Errorf("got %q, want a problem with a file that is not regular", d.Problems)
	}
}

// A missing home folder is not an error of the command line.
func TestBaselineWithoutAHome(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root has a default folder without a home: run this test as another user")
	}
	t.Parallel()
	for args, want := range map[string]string{"baseline list": "--file", "run -- true": "--baseline"} {
		v := stallspan(t, strings.Fields(args)...)
		v.Env = append(v.Env, "HOME=", "XDG_STATE_HOME=")
		code := v.run()
		want = "set XDG_STATE_HOME, or name a file with " + want
		if text := v.err.String(); code == cli.ExitUsage || !strings.Contains(text, want) {
			t.Errorf("%s: got exit code %d, %s; want %q", args, code, text, want)
		}
	}
}

func TestSlowFlags(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"--slow-factor x":   "give a number from 1 to 1000",
		"--slow-factor 0":   "give a number from 1 to 1000",
		"--slow-factor nan": "give a number from 1 to 1000",
		"--slow-load 10ns":  "a unit is missing",
		"--slow-status ok":  "choose unset or error",
		"--span-names x":    "choose grouped or indexed",
		"--stall-spans x":   "choose client or internal",
	} {
		v := stallspan(t, append(append([]string{"run"}, strings.Fields(args)...), "--", "true")...)
		if code := v.run(); code != cli.ExitUsage || !strings.Contains(v.errorLine(), want) ||
			strings.Contains(v.err.String(), "strconv") {
			t.Errorf("%s: got exit code %d, %s; want %d and %q", args, code, v.err.String(), cli.ExitUsage, want)
		}
	}
}

func TestBaselineCommands(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "baseline.json")
	b := baseline.Open(db, func(err error) { t.Error(err) })
	for i := range 6 {
		b.Learn("load/nvme/cold/llama", time.Duration(10+i)*time.Second, false, time.Now())
		b.Learn("load/nvme/warm/llama", 2*time.Second, false, time.Now())
	}
	for range 20 {
		b.Learn("load/nvme/cold/llama", time.Minute, true, time.Now())
	}
	b.Learn("epoch/train.py", 100*time.Second, false, time.Now().Add(-100*time.Hour))
	b.Close()
	call := func(code int, args ...string) string {
		t.Helper()
		v := stallspan(t, append([]string{"baseline"}, args...)...)
		if got := v.run(); got != code {
			t.Errorf("%q: got exit code %d, %s; want %d", args, got, v.err.String(), code)
		}
		return v.out.String() + v.err.String()
	}
	want := `load or epochs of        device     cache    n  median     p95 slow at seen
epoch train.py           -          -        1   100 s   100 s       - 4d ago
load llama               nvme       cold     6  12.5 s  15.0 s  22.5 s now
  The last 20 were all slow. To accept that as the new normal: stallspan
  baseline reset 'load/nvme/cold/llama'
load llama               nvme       warm     6   2.0 s   2.0 s   3.0 s now
`
	if got := call(0, "list", "--file", db); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	var listed struct {
		Baselines []struct {
			P95        float64   `json:"p95_s"`
			SlowAbove  *float64  `json:"slow_above_s"`
			SlowInARow int       `json:"slow_in_a_row"`
			Took       []float64 `json:"took_s"`
		}
	}
	if err := json.Unmarshal([]byte(call(0, "list", "--json", "--file", db)), &listed); err != nil ||
		len(listed.Baselines) != 3 ||
		listed.Baselines[0].SlowAbove != nil || listed.Baselines[1].P95 != 15 || *listed.Baselines[1].SlowAbove != 22.5 ||
		listed.Baselines[1].SlowInARow != 20 || len(listed.Baselines[1].Took) != 6 {
		t.Errorf("got %+v, %v, want three baselines, with those of llama cold in the middle", listed, err)
	}
	for _, wrong := range []string{"show", "reset", "reset llama --all", "lst", "list x", "list --file off"} {
		call(2, strings.Fields(wrong)...)
	}
	if got := call(1, "reset", "nobody", "--file", db); !strings.Contains(got, `no baseline "nobody"`) {
		t.Errorf("got %s, want no baseline of that name", got)
	}
	want = "forgot load/nvme/cold/llama: 6 durations, median 12.5 s, p95 15.0 s\n"
	if got := call(0, "reset", "load/nvme/cold/llama", "--file", db); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := call(0, "reset", "--all", "--file", db); strings.Count(got, "forgot ") != 2 {
		t.Errorf("got %s, want two forgotten baselines", got)
	}
	if got := call(0, "list", "--file", db); got != "stallspan: no baselines yet in "+db+"\n" {
		t.Errorf("got %s, want no baselines", got)
	}
	if err := os.WriteFile(db, []byte("no database"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := call(1, "list", "--file", db); !strings.Contains(got, "the next run renames it") {
		t.Errorf("got %s, want an error that names what the next run does", got)
	}
	if text, err := os.ReadFile(db); err != nil || string(text) != "no database" {
		t.Errorf("got %q, %v, want an unchanged file", text, err)
	}
}

// The first epoch of a run is cold, and is compared with first ones only.
func TestFirstEpochsAreApart(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "baseline.json")
	for range 2 {
		compared(t, db, "echo EPOCH 1; sleep 0.5; for i in 2 3 4 5; do echo EPOCH $i; sleep 0.05; done")
	}
	all, err := baseline.List(db)
	if err != nil || len(all) != 2 || all[0].Key != "epoch/job" || all[1].Key != "first/job" {
		t.Fatalf("got %+v, %v, want epoch/job and first/job", all, err)
	}
	later, first := all[0], all[1] // on a busy machine some of the later ones are slow, and not learned
	if len(first.Durations) != 2 || len(later.Durations) < 4 || len(later.Durations) > 6 ||
		first.Median() < 300*time.Millisecond || !later.Matches("job") || !first.Matches("job") {
		t.Errorf("got %+v, want 2 first epochs of about half a second, and 6 later ones", all)
	}
	v := stallspan(t, "baseline", "list", "--file", db)
	if code := v.run(); code != 0 || !strings.Contains(v.out.String(), "\nfirst epoch job ") {
		t.Errorf("exit code %d: %s\n%s, want a row of the first epoch", code, &v.err, &v.out)
	}
}

// A baseline of different work is of no use, and says so.
func TestBaselineListWarns(t *testing.T) {
	list := func(took ...time.Duration) string {
		db := filepath.Join(t.TempDir(), "baseline.json")
		s := baseline.Open(db, func(err error) { t.Error(err) })
		for _, d := range took {
			s.Learn("epoch/train.py", d, false, time.Now())
		}
		s.Close()
		v := stallspan(t, "baseline", "list", "--file", db)
		if code := v.run(); code != 0 {
			t.Fatalf("got exit code %d: %s", code, &v.err)
		}
		return strings.Join(strings.Fields(v.out.String()), " ")
	}
	const warning = "The p95 is 63 times the median: this mixes different work"
	const warm = 110 * time.Millisecond
	if got := list(time.Second, warm, 6900*time.Millisecond, warm, warm); !strings.Contains(got, warning) {
		t.Errorf("got %q, want %q", got, warning)
	}
	if got := list(2*time.Second, time.Second, time.Second); strings.Contains(got, "mixes") {
		t.Errorf("got %q, want no warning", got)
	}
}
