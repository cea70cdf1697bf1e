package scenario

import (
	"os"
	"path/filepath"
	"regexp"
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
		if d := r.Got.Device; r.Label == window.StorageBound && (d == nil || d.Operations == 0 || d.OperationsError+d.BytesError > 0) {
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

func TestRewrite(t *testing.T) {
	page := filepath.Join(t.TempDir(), "accuracy.md")
	begin, end := Mark("own cgroup")
	if err := os.WriteFile(page, []byte("Before.\n\n"+begin+"\nold\n"+end+"\n\nAfter.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	wrong := judged(window.GPUBound, window.StorageBound)
	wrong.About = "spins"
	for range 2 { // the second time changes nothing
		if err := Rewrite(page, "own cgroup", Sum([]*Result{wrong}).Markdown()); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Before.", "After.", "| gpu_bound | 1 | 0 | 0 | 0 | 0 | 0.000 |", "case-0 (spins) | storage_bound, and not gpu_bound"} {
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
}
