package agent

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/recording"
	"github.com/stallspan/stallspan/internal/sample"
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
	if code, line := v.run(), v.errorLine(); code != exitRun || !strings.Contains(line, "--perfetto /none/x.pftrace") {
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

// TestBackground: everything arrives, in order, and nothing waits for a disk that hangs.
func TestBackground(t *testing.T) {
	var to bytes.Buffer
	b := newBackground(&to)
	var want bytes.Buffer
	for i := range 100_000 {
		piece := []byte{byte(i), byte(i >> 8), byte(i >> 16)}
		want.Write(piece)
		if _, err := b.Write(piece); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Flush(); err != nil || !bytes.Equal(to.Bytes(), want.Bytes()) {
		t.Errorf("got %d bytes and the error %v, want %d bytes", to.Len(), err, want.Len())
	}
}

// TestBackgroundWaits: at the end, more may come than the buffer holds.
func TestBackgroundWaits(t *testing.T) {
	hang := &hanging{release: make(chan struct{})}
	b := newBackground(hang)
	b.wait()
	go close(hang.release)
	piece := make([]byte, maxTraceWrite)
	for range 3 * maxTraceWait / maxTraceWrite {
		if _, err := b.Write(piece); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Flush(); err != nil || hang.written != 3*maxTraceWait {
		t.Errorf("got %d bytes and the error %v, want %d", hang.written, err, 3*maxTraceWait)
	}
}

func TestBackgroundOfADiskThatHangs(t *testing.T) {
	hang := &hanging{release: make(chan struct{})}
	b := newBackground(hang)
	piece := make([]byte, maxTraceWrite)
	var err error
	for range 2*maxTraceWait/maxTraceWrite + 4 { // the goroutine takes once what waits
		if _, err = b.Write(piece); err != nil {
			break
		}
	}
	if !errors.Is(err, errTraceBehind) {
		t.Errorf("got the error %v, want %v", err, errTraceBehind)
	}
	close(hang.release)
	if err := b.Flush(); !errors.Is(err, errTraceBehind) {
		t.Errorf("got the error %v at the end, want %v", err, errTraceBehind)
	}
}

type hanging struct {
	release chan struct{}
	written int
}

func (h *hanging) Write(p []byte) (int, error) {
	<-h.release
	h.written += len(p)
	return len(p), nil
}

// TestJournals: a recording that fails does not end the trace.
func TestJournals(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.pftrace")
	files, err := openOutputs("", "", path)
	if err != nil {
		t.Fatal(err)
	}
	defer files.discard()
	to := files.live(failing{})
	for i := range 3 {
		e := recording.Entry{Source: "cpu", Sample: &sample.Sample{
			At: sample.Now(), Cores: []sample.Core{{Name: "cpu0", User: time.Duration(i) * time.Second}},
		}}
		if err := to.Write(&e); err != nil {
			t.Errorf("got the error %v, want it from the recording's owner alone", err)
		}
	}
	if err := files.trace.save(nil, nil); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if track := pftrace.Decode(t, data).Of("CPU", "cores at work"); track == nil || len(track.Values) != 2 {
		t.Errorf("got %+v, want two values", track)
	}
}

type failing struct{}

func (failing) Write(*recording.Entry) error { return errors.New("no space left on device") }
