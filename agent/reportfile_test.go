package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/agent/internal/cli"
)

func TestReportThatCannotBeWritten(t *testing.T) {
	folder := t.TempDir()
	pipe := filepath.Join(folder, "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, says := range map[string]string{
		folder + "/none/report.json":           "give a file in a folder that you may write to: no such file or directory",
		folder:                                 "is a folder: give a file in it",
		"-":                                    "give a file, or /dev/stdout",
		pipe:                                   "no such device or address", // it has no reader
		folder + "/" + strings.Repeat("x/", 3): "no such file or directory",
	} {
		marker := filepath.Join(folder, "started")
		v := stallspan(t, "run", "--report", path, "--", "touch", marker)
		code := v.run()
		if line := v.errorLine(); code != cli.ExitRun || !strings.Contains(line, "--report "+path) ||
			!strings.Contains(line, says) {
			t.Errorf("exit code %d: %s", code, line)
		}
		if _, err := os.Stat(marker); err == nil {
			t.Fatal("the program was started")
		}
	}
}

// Names come from other programs, such as those of cgroups: a line must not change the terminal.
func TestLinesOfPrintableText(t *testing.T) {
	v := stallspan(t, "run", "--report", "none\x1b]0;title\a/report.json", "--", "true")
	v.run()
	if got := v.err.String(); strings.ContainsAny(got, "\x1b\a") || !strings.Contains(got, "none?]0;title?/report") {
		t.Errorf("got %q, want a line without control characters", got)
	}
}

func TestReportHasNoPlaceAtAll(t *testing.T) {
	v := stallspan(t, "run", "--report", "/dev/full", "--", "true")
	v.Env = append(v.Env, "TMPDIR="+v.temp+"/none")
	code := v.run()
	const want = "stallspan: the report could not be written (no space left on device), nor to the folder for " +
		"temporary files: no such file or directory\n"
	if code != cli.ExitRun || !strings.HasSuffix(v.err.String(), want) {
		t.Errorf("exit code %d: %s", code, v.err.String())
	}
}

func TestReportToStandardOutput(t *testing.T) {
	t.Run("pipe", func(t *testing.T) {
		v := stallspan(t, "run", "--report", "/dev/stdout", "--", "echo", "the program's own")
		if code := v.run(); code != 0 {
			t.Fatalf("exit code %d: %s", code, v.err.String())
		}
		own, text, _ := strings.Cut(v.out.String(), "\n")
		if own != "the program's own" {
			t.Errorf("printed %q", own)
		}
		parseReport(t, []byte(text))
	})
	t.Run("file", func(t *testing.T) { // it must be neither replaced nor truncated
		path := filepath.Join(t.TempDir(), "log")
		file, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = file.Close() }()
		for _, name := range []string{"/dev/stdout", path} {
			if err := file.Truncate(0); err != nil {
				t.Fatal(err)
			}
			if _, err := file.Seek(0, 0); err != nil {
				t.Fatal(err)
			}
			v := stallspan(t, "run", "--report", name, "--", "echo", "the program's own")
			v.Stdout = file
			if code := v.run(); code != 0 {
				t.Fatalf("exit code %d: %s", code, v.err.String())
			}
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			own, rest, _ := strings.Cut(string(text), "\n")
			if own != "the program's own" {
				t.Errorf("%s: the file has %q", name, text)
			}
			parseReport(t, []byte(rest))
		}
		if info, err := os.Lstat("/dev/stdout"); err != nil || info.Mode().Type() != os.ModeSymlink {
			t.Errorf("/dev/stdout: %v, %v", info, err)
		}
	})
}

func TestReportTakesItsNameWhenComplete(t *testing.T) {
	folder := t.TempDir()
	path, link := filepath.Join(folder, "report.json"), filepath.Join(folder, "link.json")
	if err := os.WriteFile(path, []byte(`{"windows": []}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	check := func(command, want string) {
		t.Helper()
		v := stallspan(t, "run", "--report", link, "--", "sh", "-c", command)
		v.Env = append(v.Env, "REPORT="+path)
		if code := v.run(); code != 0 || v.out.String() != want {
			t.Errorf("exit code %d: %q", code, v.out.String())
		}
	}
	missing := stallspan(t, "run", "--report", link, "--", "stallspan-no-such-program")
	missing.run()
	check("cat $REPORT", `{"windows": []}`) // unchanged after a failed run, and during a run
	readReport(t, path)
	if info, err := os.Lstat(link); err != nil || info.Mode().Type() != os.ModeSymlink {
		t.Errorf("got %v, %v, want a symbolic link", info, err)
	}
	if left, _ := os.ReadDir(folder); len(left) != 2 {
		t.Errorf("left behind: %v", left)
	}
}

// A report has names of processes and files, as a recording has: it is for its user. One that it replaces keeps its
// mode.
func TestReportMode(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.json")
	for _, want := range []os.FileMode{0o600, 0o644} {
		if code := stallspan(t, "run", "--report", path, "--", "true").run(); code != 0 {
			t.Fatalf("got exit code %d, want 0", code)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("got %v, %v, want a file of mode %o", info, err, want)
		}
		if err := os.Chmod(path, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// A window of zero length has no time to split. Its report must still be JSON.
func TestReportOfAnInstant(t *testing.T) {
	for range 10 {
		v := stallspan(t, "run", "--report", "/dev/stdout", "--", "printf", `Epoch 1/3\nEpoch 2/3\nEpoch 3/3`)
		if code := v.run(); code != 0 {
			t.Fatalf("exit code %d: %s", code, v.err.String())
		}
		text, ok := strings.CutPrefix(v.out.String(), "Epoch 1/3\nEpoch 2/3\nEpoch 3/3")
		if d := parseReport(t, []byte(text)); !ok || len(d.Windows) != 3 {
			t.Errorf("%d windows: %s", len(d.Windows), v.out.String())
		}
	}
}

// A report of --json that cannot be printed is an error, as one that cannot be written to its file.
func TestJSONToAFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skipf("needs /dev/full: %v", err)
	}
	defer func() { _ = full.Close() }()
	for command, want := range map[string]int{"exit 0": cli.ExitRun, "exit 7": 7} {
		v := stallspan(t, "run", "--json", "--", "sh", "-c", command)
		v.Stderr = full
		if code := v.run(); code != want {
			t.Errorf("%s: exit code %d, want %d", command, code, want)
		}
	}
}

// TestReportReplacesOnlyReports: a wrong name costs no file, and a second run replaces the outputs of the first.
func TestReportReplacesOnlyReports(t *testing.T) {
	folder := t.TempDir()
	outputs := map[string]string{"--report": "r.json", "--html": "r.html", "--perfetto": "r.pftrace"}
	args := []string{"run"}
	for flag, name := range outputs {
		args = append(args, flag, filepath.Join(folder, name))
	}
	args = append(args, "--", "true")
	for _, when := range []string{"first", "second"} {
		if v := stallspan(t, args...); v.run() != 0 {
			t.Fatalf("the %s run: %s", when, &v.err)
		}
	}
	report := filepath.Join(folder, "r.json")
	for _, flag := range []string{"--html", "--markdown"} {
		path := filepath.Join(folder, "compared"+flag)
		for _, when := range []string{"first", "second"} {
			if v := stallspan(t, "compare", flag, path, report, report); v.run() != 0 {
				t.Fatalf("compare %s, the %s time: %s", flag, when, &v.err)
			}
		}
	}
	for name, text := range map[string]string{"notes": "precious\n", "other.json": `{"a": 1}`, "empty": "", "lines": "\n\n"} {
		path := filepath.Join(folder, name)
		for flag := range outputs {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			v := stallspan(t, "run", flag, path, "--", "true")
			code := v.run()
			now, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			precious := strings.TrimSpace(text) != ""
			if kept := string(now) == text && code == cli.ExitRun; kept != precious ||
				precious != strings.Contains(v.err.String(), "give another name, or remove it") {
				t.Errorf("%s over %s: got exit code %d and %s, want it kept %v", flag, name, code, &v.err, precious)
			}
		}
	}
}

// TestOutputsApart: one file cannot hold two outputs, under whatever name.
func TestOutputsApart(t *testing.T) {
	folder := t.TempDir()
	path, link := filepath.Join(folder, "out.json"), filepath.Join(folder, "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	for _, other := range []string{path, link, folder + "/./out.json"} {
		v := stallspan(t, "run", "--report", path, "--html", other, "--", "true")
		if code := v.run(); code != cli.ExitRun || !strings.Contains(v.err.String(), "cannot hold two outputs") {
			t.Errorf("%s: got exit code %d and %s", other, code, &v.err)
		}
	}
	if v := stallspan(t, "run", "--report", "/dev/null", "--html", "/dev/null", "--", "true"); v.run() != 0 {
		t.Errorf("/dev/null: got %s", &v.err)
	}
}
