package explain

import (
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
)

// TestFirstBatchWords: what an epoch did before its first batch, and what to try in the words of its
// language.
func TestFirstBatchWords(t *testing.T) {
	const s = time.Second
	for name, test := range map[string]struct {
		run, text, remedy, python string
		f                         window.FirstBatch
	}{
		"workers": {"train.py", "The first batch took 6.2 s of 8.3 s: 4 processes started again in that time.",
			"Keep the workers", "persistent_workers=True", window.FirstBatch{Workers: 4, Storage: 5 * s}},
		"a buffer": {"python3", "it read 1 GiB in that time, and waited for storage 81 % of it.", "shuffle in a smaller buffer",
			"prefetch_factor", window.FirstBatch{Read: 1 << 30, Storage: 5 * s}},
		"a listing": {"train.py", "The first batch took 6.2 s of 8.3 s, and hardly any of that was waiting for storage.",
			"a listing of the files", "persistent_workers=True", window.FirstBatch{}},
		"a launcher": {"torchrun", "a process started again", "Keep the workers from one epoch to the next",
			"persistent_workers=True", window.FirstBatch{Workers: 1}},
		"a script of a launcher": {"/opt/uv run train.py", "a process started again", "Keep the workers from one epoch",
			"persistent_workers=True", window.FirstBatch{Workers: 1}},
		"another language": {"./train", "a process started again", "Keep the workers from one epoch to the next.", "",
			window.FirstBatch{Workers: 1}},
		"a lock": {"train.py", "and most of that was waiting for a lock.", "Look at who holds the lock", "",
			window.FirstBatch{Workers: 2, Other: 4 * s}},
		"other": {"train.py", "and most of that was other waiting.", "Find the line where it waits", "",
			window.FirstBatch{Workers: 2, Other: 6 * s}},
	} {
		r := &window.Report{Window: window.Window{Kind: window.Epoch, Run: test.run,
			End: sample.Stamp{Mono: 8300 * time.Millisecond}}}
		if name == "a lock" {
			r.Other, r.OtherReasons = 5*s, []window.OtherReason{{Kind: window.OtherLock, Name: "lock", Time: 4 * s}}
		}
		test.f.Took = 6200 * time.Millisecond
		r.Findings = []window.Finding{test.f}
		f := FurtherFindings(r)[0]
		if !strings.Contains(f.Text, test.text) || !strings.Contains(f.Remedy, test.remedy) ||
			!strings.Contains(f.Remedy, test.python) || test.python == "" && strings.Contains(f.Remedy, "PyTorch") {
			t.Errorf("%s: got %q, %q, want %q, %q with %q", name, f.Text, f.Remedy, test.text, test.remedy, test.python)
		}
	}
}
