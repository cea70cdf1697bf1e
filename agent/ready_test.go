package agent

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stallspan/stallspan/agent/internal/reports"
)

// A program that shares a core with another one was ready for it half of the time: the report does not call that time
// on the CPU.
func TestNoCore(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("taskset"); err != nil {
		t.Skip("needs taskset")
	}
	const work = `i=0; while [ $i -lt 1000000 ]; do i=$((i+1)); done`
	ctx, cancel := context.WithCancel(context.Background())
	other := exec.CommandContext(ctx, "taskset", "-c", "0", "sh", "-c", "while :; do "+work+"; done")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); _ = other.Wait() })

	path := filepath.Join(t.TempDir(), "report.json")
	v := stallspan(t, "run", "--report", path, "--", "taskset", "-c", "0", "sh", "-c", work)
	if err := v.Run(); err != nil {
		t.Fatalf("got %v and %s, want a report", err, &v.err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got reports.Document
	if err := json.Unmarshal(text, &got); err != nil || got.Run == nil || got.Run.Process == nil {
		t.Fatalf("got %+v and %v, want a report of the run", got, err)
	}
	if !got.Run.Evidence.Followed() {
		t.Skip("needs BPF: the scheduler's events")
	}
	if ready, on := got.Run.Stall.Ready, got.Run.Process.OnCPU; ready < 0.3*(on+ready) {
		t.Errorf("got %.2f s ready and %.2f s on a CPU, want about half or more", ready, on)
	}
	if !strings.Contains(got.Run.Finding, "had no core") {
		t.Errorf("got %q, want that it had no core", got.Run.Finding)
	}
}
