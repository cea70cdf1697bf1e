package agent

import (
	"path/filepath"
	"testing"
)

// TestExample runs examples/train.py on the real disk, as the README does: the epoch from the disk waits for it, the
// same epoch from the page cache does not. Numbers that CPU contention blurs are not checked.
func TestExample(t *testing.T) {
	file := filepath.Join(t.TempDir(), "report.json")
	v := stallspan(t, "run", "--report", file, "--", python(t), "../examples/train.py", "--data", t.TempDir(), "--samples",
		"8192")
	if code := v.run(); code != 0 {
		t.Fatalf("exit code %d: %s", code, v.err.String())
	}
	d := readReport(t, file)
	if len(d.Windows) != 2 {
		t.Fatalf("got %+v, want 2 windows", d)
	}
	cold, cached := d.Windows[0], d.Windows[1]
	if cold.Epoch == nil || *cold.Epoch != 1 || cached.Epoch == nil || *cached.Epoch != 2 || cold.Stall == nil ||
		cached.Stall == nil {
		t.Fatalf("got %+v, want epochs 1 and 2 with their ledgers", d)
	}
	if len(cold.Disks) == 0 || cold.Disks[0].ReadBytes < 64<<20 { // of 128 MiB
		t.Skip("the folder for temporary files lies in memory: no read waits for a disk there")
	}
	if cold.Verdict != "storage_bound" && cold.Verdict != "mixed" {
		t.Errorf("cold: %s\n%s", cold.Verdict, v.err.String())
	}
	if cached.Verdict == "storage_bound" || cached.Stall.Storage/cached.Duration > cold.Stall.Storage/cold.Duration/2 {
		t.Errorf("cached: %s\n%s", cached.Verdict, v.err.String())
	}
}
