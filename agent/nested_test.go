package agent

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// TestStepsInEpochs: the package announces steps in epochs, and all read from one disk.
// They are of one program, so
// none is another window to the others. In the table, steps stand indented under their epoch.
func TestStepsInEpochs(t *testing.T) {
	t.Parallel()
	source, err := filepath.Abs("../python/src")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	report := filepath.Join(t.TempDir(), "report.json")
	v := stallspan(t, "run", "--report", report, "--", python(t), "-c", `
import os, sys, time
sys.path.insert(0, sys.argv[1])
import stallspan

path = os.path.join(sys.argv[2], "data.bin")
with open(path, "wb") as f:
    f.write(os.urandom(1 << 20) * 16)
    f.flush()
    os.fsync(f.fileno())

def read():
    end = time.monotonic() + 3
    while time.monotonic() < end:
        fd = os.open(path, os.O_RDONLY)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.pread(fd, 1 << 22, 0)
        os.close(fd)
        yield 0

for n in stallspan.epochs(range(2)):
    for batch in stallspan.watch(read(), seconds=1):
        pass
`, source, folder)
	v.Dir = folder
	if code := v.run(); code != 0 {
		t.Fatalf("exit code %d: %s", code, v.err.String())
	}
	d := readReport(t, report)
	epochs := map[string]bool{}
	for i := range d.Windows {
		if w := &d.Windows[i]; w.Kind == "epoch" {
			epochs[w.ID] = true
		}
	}
	steps := 0
	for i := range d.Windows {
		w := &d.Windows[i]
		if w.OtherReaders != 0 {
			t.Errorf("%s: got %d other windows, want none: %s", w.label(), w.OtherReaders, w.Remedy)
		}
		if w.Kind == "steps" {
			steps++
		}
		if want := w.Kind == "steps"; epochs[w.Within] != want {
			t.Errorf("%s: got it within %q, want within an epoch: %v", w.label(), w.Within, want)
		}
	}
	if len(epochs) != 2 || steps < 4 {
		t.Errorf("got %d epochs and %d steps, want 2 and some of each: %s", len(epochs), steps, v.err.String())
	}
	if n := len(regexp.MustCompile(`(?m)^  steps `).FindAllString(v.err.String(), -1)); n != steps {
		t.Errorf("got %d indented rows, want %d:\n%s", n, steps, v.err.String())
	}
	other := filepath.Join(t.TempDir(), "other.json") // the same run, compared with itself
	text, err := os.ReadFile(report)
	if err != nil || os.WriteFile(other, text, 0o600) != nil || !json.Valid(text) {
		t.Fatalf("got %v, want a report to copy", err)
	}
	c := stallspan(t, "compare", report, other)
	if code := c.run(); code != 0 {
		t.Fatalf("compare: exit code %d: %s", code, c.err.String())
	}
	if n := len(regexp.MustCompile(`(?m)^  steps `).FindAllString(c.out.String(), -1)); n != steps {
		t.Errorf("compare: got %d indented rows, want %d:\n%s", n, steps, c.out.String())
	}
}
