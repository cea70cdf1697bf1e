package scenario

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stallspan/stallspan/internal/window"
)

var every = regexp.MustCompile("")

// testdata holds short runs of cases.
func TestReplay(t *testing.T) {
	results, err := Replay("testdata", every)
	if err != nil {
		t.Fatal(err)
	}
	if len(results) < 2 {
		t.Fatalf("%d results", len(results))
	}
	for _, r := range results {
		t.Log(r.Line())
		if r.Void != "" || !r.Right() || r.Truth.Verdict != r.Label {
			t.Errorf("%s is %s by its truth, and was found to be %s (void: %q)", r.Name, r.Truth.Verdict, r.Got.Verdict, r.Void)
		}
		if off := r.Ledger(); off > Targets.Ledger {
			t.Errorf("%s: the ledger is off by %.3f", r.Name, off)
		}
		if r.Got.VerdictAfter == nil || *r.Got.VerdictAfter > r.Seconds {
			t.Errorf("%s: a verdict after %v s", r.Name, r.Got.VerdictAfter)
		}
		if d := r.Got.Device; r.Label == window.StorageBound &&
			(d == nil || d.Found.Read.Operations == 0 || d.OperationsError+d.BytesError > 0) {
			t.Errorf("%s: its device %+v", r.Name, d)
		}
	}
}

func TestReplayWithoutRecordings(t *testing.T) {
	folder := t.TempDir()
	if _, err := Replay(folder, every); err == nil || !strings.Contains(err.Error(), "run the scenarios first") {
		t.Errorf("an empty folder: %v", err)
	}
	name := filepath.Join(folder, "cut-1"+recordingEnd)
	if err := os.WriteFile(name, []byte("no gzip"), 0o600); err != nil {
		t.Fatal(err)
	}
	if results, err := Replay(folder, every); err != nil || len(results) != 0 {
		t.Errorf("a recording without results: %v, %v", results, err)
	}
	if err := os.WriteFile(strings.TrimSuffix(name, recordingEnd)+resultsEnd, []byte("[]"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Replay(folder, every); err == nil || !strings.Contains(err.Error(), name) {
		t.Errorf("a damaged recording: %v", err)
	}
}

// A row lists all faults of a window, not only the first one.
func TestFaults(t *testing.T) {
	far, late := 0.03, 12.5
	r := judged(window.StorageBound, window.StorageBound)
	if faults := r.faults(); len(faults) > 0 {
		t.Errorf("nothing is wrong: %q", faults)
	}
	r.Truth.Parts, r.Got.Parts = Parts{Busy: 1, Storage: 2.5, CPU: 0.5}, Parts{Busy: 1, Storage: 2.75, CPU: 0.25}
	r.Truth.Speedup, r.Got.Speedup = 6.89, 5.14
	r.Got.VerdictAfter, r.Got.ChangeAfter = &late, &late
	r.Got.Device = &Device{OperationsError: 2, BytesError: 4096, AwaitError: &far, WriteAwaitError: &far}
	want := []string{
		"ledger off by 6.2 points", "speed-up 6.89 measured, 5.14 predicted (25 % off)", "right after 12.5 s", "right 12.5 s after the change",
		"2 operations and 4096 bytes that are not the device's own", "await of reads off by 3.0 %", "await of writes off by 3.0 %",
	}
	if got := r.faults(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	r.Got.Speedup = 0
	if got := r.faults(); !slices.Contains(got, "speed-up 6.89 measured, none predicted") {
		t.Errorf("faults: got %q, want that no speed-up was predicted", got)
	}
	r.Void = "too near"
	if got := r.faults(); !slices.Equal(got, []string{"void: too near"}) {
		t.Errorf("faults of a void window: got %q, want the reason alone", got)
	}
}

func TestRewrite(t *testing.T) {
	page := filepath.Join(t.TempDir(), "results.md")
	begin, end := Mark("own cgroup")
	if err := os.WriteFile(page, []byte("Before.\n\n"+begin+"\nold\n"+end+"\n\nAfter.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	wrong := judged(window.GPUBound, window.StorageBound)
	wrong.About = "spins"
	wrong.Truth.Parts, wrong.Got.Parts = Parts{Busy: 4}, Parts{Busy: 3, Storage: 1}
	for range 2 { // the second call changes nothing
		if err := Rewrite(page, "own cgroup", Sum([]*Result{wrong}).Markdown()); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Before.", "After.", "| gpu_bound | 1 | 0 | 0 | 0 | 0 | 0.000 |",
	} {
		if strings.Count(string(text), want) != 1 {
			t.Errorf("%q is not there once:\n%s", want, text)
		}
	}
	if strings.Contains(string(text), "old") {
		t.Error("the old table is still there")
	}
	if err := Rewrite(page, "shared cgroup", ""); err == nil {
		t.Error("there are no such marks")
	}
	var printed strings.Builder
	Sum([]*Result{wrong}).Print(&printed)
	want := "case-0 (spins) | storage_bound, and not gpu_bound; ledger off by 25.0 points; GPU busy off by 25.0 points |"
	if got := printed.String(); strings.Count(got, want) != 1 || strings.Contains(string(text), want) {
		t.Errorf("got printed\n%s\nand in the page\n%s\nwant %q printed once, and not in the page", got, text, want)
	}
}

// A replay matches -case against the case's name alone, like a run.
func TestReplayChoosesByName(t *testing.T) {
	for pattern, want := range map[string]int{
		"^gpu_bound$": 1, "^storage_spinning$": 1, "^gpu": 1, "-150": 0, "jsonl": 0, "100$": 0, "_": 2,
	} {
		results, err := Replay("testdata", regexp.MustCompile(pattern))
		if err != nil || len(results) != want {
			t.Errorf("%q: %d results, want %d, %v", pattern, len(results), want, err)
		}
	}
}
