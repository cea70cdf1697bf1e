package agent

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// TestExample runs examples/train.py on the real disk, as the README does: the epoch whose samples come from the disk
// waits for it, the same epoch from the page cache does not. What CPU contention blurs is left to quiet machines.
func TestExample(t *testing.T) {
	file := filepath.Join(t.TempDir(), "report.json")
	v := stallspan(t, "run", "--report", file, "--", python(t), "../examples/train.py", "--data", t.TempDir(), "--samples", "8192")
	if code := v.run(); code != 0 {
		t.Fatalf("exit code %d: %s", code, v.err.String())
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Windows []struct {
			Kind, Verdict string
			Epoch         int
			Duration      float64 `json:"duration_s"`
			Stall         struct {
				Storage float64 `json:"storage_s"`
			}
			Disks []struct {
				ReadBytes int64 `json:"read_bytes"`
			}
		}
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Windows) != 2 || d.Windows[0].Epoch != 1 || d.Windows[1].Epoch != 2 {
		t.Fatalf("%s", text)
	}
	cold, cached := d.Windows[0], d.Windows[1]
	if len(cold.Disks) == 0 || cold.Disks[0].ReadBytes < 128<<20 {
		t.Skip("the folder for temporary files lies in memory: no read waits for a disk there")
	}
	if cold.Verdict != "storage_bound" && cold.Verdict != "mixed" {
		t.Errorf("cold: %s\n%s", cold.Verdict, v.err.String())
	}
	if cached.Verdict == "storage_bound" || cached.Stall.Storage/cached.Duration > cold.Stall.Storage/cold.Duration/2 {
		t.Errorf("cached: %s\n%s", cached.Verdict, v.err.String())
	}
}
