package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/agent/internal/cli"
	"github.com/stallspan/stallspan/test/pftrace"
)

func readTrace(t *testing.T, path string) *pftrace.Trace {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return pftrace.Decode(t, data)
}

// The trace of a run has its windows, and so has that of its recording.
func TestPerfettoOfARun(t *testing.T) {
	folder := t.TempDir()
	trace, again := filepath.Join(folder, "run.pftrace"), filepath.Join(folder, "again.pftrace")
	report, recorded := filepath.Join(folder, "run.json"), filepath.Join(folder, "run.gz")
	v := stallspan(t, "run", "--perfetto", trace, "--record", recorded, "--report", report, "--name", "two", "--",
		"sh", "-c", twoEpochs)
	if code := v.run(); code != 0 {
		t.Fatalf("exit code %d: %s", code, v.err.String())
	}
	if v = stallspan(t, "replay", "--perfetto", again, recorded); v.run() != 0 {
		t.Fatalf("got the error %s, want none", v.err.String())
	}
	r := readReport(t, report)
	for _, path := range []string{trace, again} {
		tr := readTrace(t, path)
		if tr.Clock != 3 {
			t.Errorf("%s: got the clock %d, want CLOCK_MONOTONIC: 3", path, tr.Clock)
		}
		found := map[string]pftrace.Slice{}
		for _, s := range tr.All("Windows") {
			name, _, _ := strings.Cut(s.Name, ":")
			found[name] = s
		}
		if len(found) != 3 || found["two"].Depth != 0 || found["epoch 2"].Depth != 1 {
			t.Fatalf("%s: got the windows %v, want two epochs within the run", path, found)
		}
		for i, name := range []string{"epoch 1", "epoch 2"} {
			s, want := found[name], r.Windows[i]
			if got := time.Duration(s.End - s.Start).Seconds(); got < want.Duration-1e-3 || got > want.Duration+1e-3 {
				t.Errorf("%s: %s has %v s, want %v as in the report", path, name, got, want.Duration)
			}
			if s.Notes["finding"] != want.Finding {
				t.Errorf("%s: %s has the finding %v, want %q", path, name, s.Notes["finding"], want.Finding)
			}
			wall := uint64(want.Start.UnixNano()) - tr.Snapshots[0][1] + tr.Snapshots[0][3]
			if diff := int64(s.Start) - int64(wall); diff < -1e6 || diff > 1e6 {
				t.Errorf("%s: %s begins %d ns from where the clocks of the file put it", path, name, diff)
			}
		}
		if tr.Of("CPU", "cores at work") == nil {
			t.Errorf("%s: got no counters of the CPU", path)
		}
	}
}

func TestPerfettoThatCannotBeWritten(t *testing.T) {
	v := stallspan(t, "run", "--perfetto", "/none/x.pftrace", "--", "true")
	if code, line := v.run(), v.errorLine(); code != cli.ExitRun || !strings.Contains(line, "--perfetto /none/x.pftrace") {
		t.Errorf("exit code %d: %s", code, line)
	}
}

// A trace on a full disk is an error, and no file.
func TestPerfettoOnAFullDisk(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("there is no /dev/full")
	}
	v := stallspan(t, "replay", "--perfetto", "/dev/full", "../testdata/recordings/gpu.jsonl.gz")
	if code, line := v.run(), v.errorLine(); code == 0 || !strings.Contains(line, "no space left") {
		t.Errorf("exit code %d: %s, want an error about the disk", code, line)
	}
}

// A run that fails leaves no file.
func TestPerfettoIsDiscarded(t *testing.T) {
	folder := t.TempDir()
	v := stallspan(t, "run", "--perfetto", filepath.Join(folder, "x.pftrace"), "--", "/none/program")
	if v.run() == 0 {
		t.Error("got no error from a program that does not exist")
	}
	if left, _ := filepath.Glob(filepath.Join(folder, "*")); len(left) > 0 {
		t.Errorf("got %v, want no file", left)
	}
}
