package agent

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stallspan/stallspan/internal/state/baseline"
	"github.com/stallspan/stallspan/internal/state/ceiling"
	"github.com/stallspan/stallspan/internal/state/drives"
)

// old is what a version has left behind. What was measured stays the same in later versions, whatever is concluded.
type old struct {
	folder  string
	windows []oldWindow
}

type oldWindow struct {
	ID       string  `json:"id"`
	Kind     string  `json:"kind"`
	Duration float64 `json:"duration_s"` // seconds
	GPU      struct {
		IDs []string `json:"ids"`
	} `json:"gpu"`
	Own struct {
		Read uint64 `json:"read_bytes"`
	} `json:"own_io"`
	Disks []struct {
		Name       string `json:"name"`
		Read       uint64 `json:"read_bytes"`
		Operations uint64 `json:"read_operations"`
	} `json:"disks"`
}

// windowsOf returns the windows of a report, with the run as the last one.
func windowsOf(t *testing.T, text []byte) []oldWindow {
	t.Helper()
	var report struct {
		Run     *oldWindow  `json:"run"`
		Windows []oldWindow `json:"windows"`
	}
	if err := json.Unmarshal(text, &report); err != nil || report.Run == nil || len(report.Windows) != 2 {
		t.Fatalf("got %v and %.200s, want a report of a run with two windows", err, text)
	}
	all := slices.Concat(report.Windows, []oldWindow{*report.Run})
	for _, w := range all {
		if w.ID == "" || w.Own.Read == 0 || len(w.Disks) != 1 || len(w.GPU.IDs) != 1 {
			t.Fatalf("got the window %+v, want one that read from one disk, with a GPU", w)
		}
	}
	return all
}

// TestFormats reads what earlier versions have written: all that hack/formats.sh makes. docs/internals/formats.md says
// when to add another folder.
func TestFormats(t *testing.T) {
	t.Parallel()
	folders, err := filepath.Glob("../testdata/formats/*")
	if err != nil || len(folders) == 0 {
		t.Fatalf("got folders %v, %v, want at least one", folders, err)
	}
	for _, from := range folders {
		t.Run(filepath.Base(from), func(t *testing.T) {
			t.Parallel()
			o := old{folder: filepath.Join(t.TempDir(), "of a version")}
			if err := os.CopyFS(o.folder, os.DirFS(from)); err != nil {
				t.Fatal(err)
			}
			report, err := os.ReadFile(filepath.Join(o.folder, "report.json"))
			if err != nil {
				t.Fatal(err)
			}
			o.windows = windowsOf(t, report)
			t.Run("recording", o.recording)
			t.Run("report", o.report)
			t.Run("history", o.history)
			t.Run("baselines", o.baselines)
			t.Run("ceilings", o.ceilings)
			o.unchanged(t, from)
			t.Run("drives", o.drives) // changes its file
		})
	}
}

// path returns the path of a file.
func (o old) path(name string) string { return filepath.Join(o.folder, name) }

// outputOf runs a command that has to succeed, and returns what it prints.
func outputOf(t *testing.T, args ...string) []byte {
	t.Helper()
	v := stallspan(t, args...)
	if code := v.run(); code != 0 {
		t.Fatalf("stallspan %v: got the exit code %d and %s, want 0", args, code, v.err.String())
	}
	return v.out.Bytes()
}

func (o old) recording(t *testing.T) {
	got := windowsOf(t, outputOf(t, "replay", "--json", o.path("recording.jsonl.gz")))
	for i, want := range o.windows {
		if !reflect.DeepEqual(got[i], want) {
			t.Errorf("window %d: got %+v, want what the report has: %+v", i, got[i], want)
		}
	}
}

func (o old) report(t *testing.T) {
	var got struct {
		Windows []struct{ A, B oldWindow }
	}
	text := outputOf(t, "compare", "--json", o.path("report.json"), o.path("report.json"))
	if err := json.Unmarshal(text, &got); err != nil || len(got.Windows) != 2 {
		t.Fatalf("got %v and %.200s, want two windows", err, text)
	}
	for i, w := range got.Windows {
		want := o.windows[i]
		if w.A.ID != want.ID || w.B.ID != want.ID || w.A.Duration != want.Duration {
			t.Errorf("window %d: got %+v, want %+v", i, w, want)
		}
	}
}

// history tests the past: curves of each kind, windows of the report, and an event.
func (o old) history(t *testing.T) {
	files, err := filepath.Glob(o.path("*.history"))
	if err != nil || len(files) != 1 {
		t.Fatalf("got %v, %v, want the file of one day", files, err)
	}
	day := strings.TrimSuffix(filepath.Base(files[0]), ".history")
	text := outputOf(t, "history", "--json", "--dir", o.folder, "--since", day+"T00:00", "--until", day+"T23:59")
	kinds, ids, values := map[string]int{}, map[string]bool{}, map[string]float64{}
	for line := range bytes.Lines(text) {
		var e struct {
			Kind   string
			Report oldWindow
			Event  struct{ Name string }
			Values map[string]float64
		}
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		kinds[e.Kind+e.Event.Name]++
		ids[e.Report.ID] = true
		for name, value := range e.Values {
			values[e.Kind+" "+name] = value
		}
	}
	for _, kind := range []string{"machine", "gpu", "disk", "job", "window", "eventstallspan.window.slow"} {
		if kinds[kind] == 0 {
			t.Errorf("got %v, want %s", kinds, kind)
		}
	}
	for _, w := range o.windows {
		if !ids[w.ID] {
			t.Errorf("got windows %v, want %s", ids, w.ID)
		}
	}
	// The stand-in for the driver is half busy and takes 250 W.
	if values["gpu busy_ratio"] != 0.5 || values["gpu power_watts"] != 250 || values["disk reads_per_s"] <= 0 {
		t.Errorf("got %v, want a GPU with 0.5 and 250 W, and a disk with reads", values)
	}
}

func (o old) baselines(t *testing.T) {
	all, err := baseline.List(o.path("baseline.json"))
	if err != nil || len(all) != 1 || len(all[0].Durations) != 1 || all[0].Durations[0] <= 0 || all[0].Last.IsZero() {
		t.Errorf("got %+v, %v, want one with a duration", all, err)
	}
}

func (o old) ceilings(t *testing.T) {
	all, err := ceiling.Load(o.path("ceilings.json"))
	if err != nil || len(all) != 1 || all[0].Disk != "vda" || all[0].Read <= 0 || all[0].Await <= 0 {
		t.Errorf("got %+v, %v, want a measurement of vda", all, err)
	}
}

func (o old) drives(t *testing.T) {
	found, err := drives.Forget(o.path("drives.json"), "S1")
	if err != nil || len(found) != 1 || found[0].Model != "Example" || found[0].Protocol != "NVMe" {
		t.Errorf("got %+v, %v, want the drive S1", found, err)
	}
}

// unchanged fails if reading has changed, added or renamed a file, such as one that it could not use.
func (o old) unchanged(t *testing.T, from string) {
	t.Helper()
	list := func(folder string) map[string]string {
		all := map[string]string{}
		entries, err := os.ReadDir(folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), ".") {
				continue // a lock
			}
			text, err := os.ReadFile(filepath.Join(folder, e.Name()))
			if err != nil {
				t.Fatal(err)
			}
			all[e.Name()] = string(text)
		}
		return all
	}
	before, after := list(from), list(o.folder)
	for name, text := range after {
		if before[name] != text {
			t.Errorf("%s: got other bytes after it was read, want the same", name)
		}
	}
	if len(after) != len(before) {
		t.Errorf("got %d files after they were read, want %d", len(after), len(before))
	}
}
