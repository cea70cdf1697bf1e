package agent

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stallspan/stallspan/agent/internal/cli"
	"github.com/stallspan/stallspan/agent/internal/record"
	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/test/fixture"
)

// recordWindows records this machine, with a long window and many short ones. It returns the reports of the windows,
// and the file.
func recordWindows(t *testing.T) (path string, was map[string]string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "f.gz")
	r := record.Recorder{Path: path}
	if err := r.Open(); err != nil {
		t.Fatal(err)
	}
	was = map[string]string{}
	m, err := monitor.New(monitor.Config{Journal: r.Journal(), Reports: func(r *window.Report) {
		text, err := json.Marshal(explain.NewReport(r))
		if err != nil {
			t.Error(err)
		}
		was[r.ID] = string(text)
	}})
	if err != nil {
		t.Fatal(err)
	}
	m.Tick()
	if err := m.Jobs.Follow("job", os.Getpid(), "", false); err != nil {
		t.Fatal(err)
	}
	begin := func(name string) string {
		id, err := m.Windows.Begin(window.Window{Kind: window.Custom, Name: name, Job: "job"}, m.Now())
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	long := begin("long")
	short := begin("short")
	for i := range 2000 {
		m.Tick()
		if i%20 != 19 {
			continue
		}
		at := m.Now()
		if _, err := m.Windows.End(short, at); err != nil {
			t.Fatal(err)
		}
		if short, err = m.Windows.Begin(window.Window{Kind: window.Custom, Name: "short", Job: "job"}, at); err != nil {
			t.Fatal(err)
		}
	}
	at := m.Now()
	for _, id := range []string{short, long} {
		if _, err := m.Windows.End(id, at); err != nil {
			t.Fatal(err)
		}
	}
	m.Jobs.Unfollow("job")
	m.Stop()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return path, was
}

// replayed returns the windows of a replay by id, as text of one line.
func replayed(t *testing.T, code int, files ...string) (is map[string]string, d rawReport, said string) {
	t.Helper()
	v := stallspan(t, append([]string{"replay", "--json"}, files...)...)
	if got := v.run(); got != code {
		t.Fatalf("exit code %d: %s", got, v.err.String())
	}
	if err := json.Unmarshal(v.out.Bytes(), &d); err != nil {
		t.Fatalf("got the error %v, want none: %s", err, v.out.String())
	}
	is = map[string]string{}
	for _, w := range d.Windows {
		var line bytes.Buffer
		var id struct{ ID string }
		if err := json.Compact(&line, w); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(w, &id); err != nil {
			t.Fatal(err)
		}
		is[id.ID] = line.String()
	}
	return is, d, v.err.String()
}

// Windows are the same after a replay. Of a recording that is cut off, those before the cut are.
func TestReplay(t *testing.T) {
	t.Parallel()
	path, was := recordWindows(t)
	is, d, _ := replayed(t, 0, path)
	if len(is) != len(was) || len(d.Problems) != 0 {
		t.Errorf("%d windows, and %d replayed: %v", len(was), len(is), d.Problems)
	}
	for id, want := range was {
		if is[id] != want {
			t.Fatalf("the window was %s\nand is %s", want, is[id])
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text[:len(text)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	most, _, said := replayed(t, cli.ExitFailed, path)
	if len(most) < 10 || len(most) >= len(was) ||
		!strings.HasPrefix(said, "stallspan: "+path+": the recording is cut off") ||
		strings.Count(said, "\n") != 1 {
		t.Errorf("cut off: %d windows of %d, %s", len(most), len(was), said)
	}
}

// A recording without windows gets one over all of it, and its table is of the devices.
func TestReplayWithoutWindows(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"cpu_only.jsonl.gz", "accelerator.jsonl.gz"} {
		path := fixture.File(t, "recordings", name)
		v := stallspan(t, "replay", "--report", "/dev/stderr", path)
		if code := v.run(); code != 0 || !strings.HasPrefix(v.out.String(), "\ndevice ") ||
			!strings.Contains(v.out.String(), "\nOf ") {
			t.Errorf("%s: exit code %d: %s%s", name, code, v.out.String(), v.err.String())
		}
		if d := parseReport(t, v.err.Bytes()); d.Run.Duration < 5 || d.Run.Stall == nil {
			t.Errorf("%s: got %+v, want a run of at least 5 s with a ledger", name, d.Run)
		}
	}
}

func TestReplayRefuses(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	pack := func(name, text string) string {
		var file bytes.Buffer
		zip := gzip.NewWriter(&file)
		_, _ = zip.Write([]byte(text))
		_ = zip.Close()
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, file.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	diary := filepath.Join(folder, "diary")
	if err := os.WriteFile(diary, []byte("not packed"), 0o600); err != nil {
		t.Fatal(err)
	}
	const header = `{"stallspan_recording":1}` + "\n"
	const reading = `{"source":"a","sample":{"at":{"mono":5,"wall":"2026-01-02T03:04:05Z"},"gpus":[{"id":"g","busy":5}]}}` + "\n"
	const begin = `{"mark":{"op":"begin","id":"w","at":{"mono":5,"wall":"2026-01-02T03:04:05Z"},"window":{"kind":"dance"}}}` + "\n"
	for _, test := range []struct {
		code int
		says string
		args []string
	}{
		{cli.ExitUsage, "replay needs a recording", nil},
		{cli.ExitFailed, "cannot be read: no such file or directory", []string{folder + "/none"}},
		{cli.ExitFailed, "diary: this is not a recording of Stallspan", []string{diary}},
		{cli.ExitFailed, "packed: this is not a recording of Stallspan", []string{pack("packed", "a diary\n")}},
		{cli.ExitFailed, "standard input: this is not a recording", []string{"-"}},
		{cli.ExitFailed, folder + ": the recording cannot be read", []string{folder}},
		{cli.ExitFailed, "use the version that recorded it, or a newer one",
			[]string{pack("newer", `{"stallspan_recording":2}`+"\n")}},
		{cli.ExitFailed, "first line is damaged", []string{pack("odd", `{"stallspan_recording":1,"interval":7}`+"\n")}},
		{cli.ExitUsage, "replay needs a recording", []string{pack("a", header), pack("b", header)}},
		{cli.ExitFailed, "damaged: the recording is damaged at line 3", []string{pack("damaged", header+reading+"{}\n"+reading)}},
		{cli.ExitFailed, "--report " + folder + "/no/r.json cannot be written",
			[]string{"--report", folder + "/no/r.json", pack("good", header)}},
	} {
		v := stallspan(t, append([]string{"replay"}, test.args...)...)
		if code := v.run(); code != test.code || !strings.Contains(v.errorLine(), test.says) {
			t.Errorf("%v: exit code %d: %s", test.args, code, v.err.String())
		}
	}
	// A mark of a newer version is one of the problems. Everything else is read.
	_, d, _ := replayed(t, 0, pack("kinds", header+reading+begin))
	if len(d.Problems) != 1 || !strings.Contains(d.Problems[0], `the kind "dance", which does not exist`) {
		t.Errorf("got the problems %v, want one for the kind dance", d.Problems)
	}
	for _, text := range []string{header, header + reading} {
		if is, d, _ := replayed(t, 0, pack("little", text)); len(is) != 0 || d.Run != nil || d.Windows == nil {
			t.Errorf("%s: got %v, want an empty list of windows", text, is)
		}
	}
}
