package agent

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/stallspan/stallspan/agent/internal/cli"
	"github.com/stallspan/stallspan/agent/internal/output"
)

func TestExitCodeOfTheProgram(t *testing.T) {
	for command, want := range map[string]int{
		"exit 0":                     0,
		"exit 7":                     7,
		"exit 255":                   255,
		"kill -KILL $$":              137,
		"kill -TERM $$":              143,
		"kill -INT $$":               130,
		"echo Epoch 1/2; kill -9 $$": 137,
	} {
		v := stallspan(t, "run", "--fail-on", "slow", "--", "sh", "-c", command)
		if code := v.run(); code != want {
			t.Errorf("%s: exit code %d: %s", command, code, v.err.String())
		}
		if !strings.Contains(v.err.String(), "verdict") {
			t.Errorf("%s: no table: %q", command, v.err.String())
		}
	}
}

func TestExitCodeOfRunItself(t *testing.T) {
	folder := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, test := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"run", "--", "stallspan-no-such-program"}, cli.ExitNotFound, "stallspan-no-such-program: not found"},
		{[]string{"run", "--", folder + "/none"}, cli.ExitNotFound, "/none: not found"},
		{[]string{"run", "--", file("plain", "#!/bin/sh\n", 0o644)}, cli.ExitCannotRun, "check that it is executable"},
		{[]string{"run", "--", folder}, cli.ExitCannotRun, "is a directory: give a program"},
		{[]string{"run", "--", file("garbage", "\x00\x01", 0o755)}, cli.ExitCannotRun, "exec format error"},
		{[]string{"run", "--", file("script", "#!/no/such/shell\n", 0o755)}, cli.ExitCannotRun,
			"the interpreter in its first line was not found"},
		{[]string{"run"}, cli.ExitUsage, "run needs a program: stallspan run -- python3 train.py"},
		{[]string{"run", "--"}, cli.ExitUsage, "run needs a program"},
		{[]string{"run", "--reprot", "x", "--", "true"}, cli.ExitUsage,
			"unknown flag: --reprot (did you mean --report?): see stallspan run --help"},
		{[]string{"run", "-report=x", "--", "true"}, cli.ExitUsage,
			"unknown flag: -report=x (did you mean --report?): see stallspan run --help"},
		{[]string{"stat", "--jsno"}, cli.ExitUsage, "unknown flag: --jsno (did you mean --json?): see"},
		{[]string{"--colour", "never", "stat"}, cli.ExitUsage, "unknown flag: --colour (did you mean --color?): see"},
		{[]string{"run", "--zzzzzzzzzzzz", "--", "true"}, cli.ExitUsage, "unknown flag: --zzzzzzzzzzzz: see"},
		{[]string{"run", "--report"}, cli.ExitUsage, "flag needs an argument: --report: see stallspan run --help"},
		{[]string{"run", "--fail-on", "fast", "--", "true"}, cli.ExitUsage,
			"--fail-on \"fast\" is unknown: the only choice is slow"},
		{[]string{"run", "--epoch-pattern", "(", "--", "true"}, cli.ExitUsage, "--epoch-pattern"},
		{[]string{"run", "--load-begin", "begin", "--", "true"}, cli.ExitUsage, "--load-end"},
		{[]string{"demo", "x"}, cli.ExitUsage, ""},
		{[]string{"runn", "--", "true"}, cli.ExitUsage, `unknown command "runn" (did you mean "run"?): see stallspan --help`},
		{[]string{"--no-such"}, cli.ExitUsage, "see stallspan --help"},
		{[]string{"foo"}, cli.ExitUsage, `unknown command "foo": see stallspan --help`},
		{[]string{"attach", "4194303"}, cli.ExitFailed, "there is no process 4194303: see ps -e"},
		{[]string{"help", "runn"}, cli.ExitUsage, `unknown command "runn" (did you mean "run"?): see stallspan --help`},
		{[]string{"help", "baseline", "lst"}, cli.ExitUsage, `unknown command "lst" (did you mean "list"?)`},
		{[]string{"completion", "bsh"}, cli.ExitUsage, `unknown command "bsh" (did you mean "bash"?)`},
	} {
		v := stallspan(t, test.args...)
		code := v.run()
		if line := v.errorLine(); code != test.code || !strings.Contains(line, test.says) {
			t.Errorf("%q: exit code %d: %s", test.args, code, line)
		}
		if v.out.Len() > 0 {
			t.Errorf("%q: standard output belongs to the program: %q", test.args, v.out.String())
		}
	}
}

func TestHelp(t *testing.T) {
	for _, args := range [][]string{nil, {"--help"}, {"run", "--help"}, {"demo", "--help"}, {"--version"}, {"help"},
		{"help", "run"}, {"help", "baseline", "list"}, {"completion"}, {"completion", "bash"}} {
		v := stallspan(t, args...)
		if code := v.run(); code != 0 || v.err.Len() > 0 || !strings.Contains(v.out.String(), "stallspan") {
			t.Errorf("%q: exit code %d: %s", args, code, v.err.String())
		}
	}
}

// Help fits a terminal of 100 columns.
func TestHelpWidth(t *testing.T) {
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		var text bytes.Buffer
		cmd.SetOut(&text)
		if err := cmd.Help(); err != nil {
			t.Errorf("%s --help: got the error %v", cmd.CommandPath(), err)
		}
		for line := range strings.Lines(text.String()) {
			if width := output.Columns(strings.TrimSuffix(line, "\n")); width > 100 {
				t.Errorf("%s --help: got a line of %d columns, want at most 100: %s", cmd.CommandPath(), width, line)
			}
		}
		for _, below := range cmd.Commands() {
			visit(below)
		}
	}
	visit(Command())
}

// A wrong value of a flag leads to exit code 2, and to an error without the names of Go's parsers.
func TestFlagValues(t *testing.T) {
	for args, want := range map[string]string{
		"run --slow-load fast -- true":      `--slow-load "fast": give seconds, or a duration such as 500ms or 1h: see`,
		"mark begin --kind epoch --epoch x": `--epoch "x": give a whole number: see stallspan mark begin --help`,
		"bench sda --seed -1":               `--seed "-1": give a whole number, 0 or more: see`,
		"bench sda --step 1h":               "choose 50ms to 10s",
		"stat --json=maybe":                 `--json "maybe": give true or false: see`,
		"agent --listen x":                  `--listen "x" is not a port: give localhost:4319`,
		"page --listen x":                   `--listen "x" is not a port: give 8080, or 0 for any`,
		"bench sda sdb":                     "bench reads one disk: stallspan bench nvme0n1, or stallspan bench /data",
	} {
		v := stallspan(t, strings.Fields(args)...)
		if code := v.run(); code != cli.ExitUsage || !strings.Contains(v.errorLine(), want) {
			t.Errorf("%s: got exit code %d, %s; want %d, %s", args, code, v.errorLine(), cli.ExitUsage, want)
		}
	}
}

func TestFlagsOfTheProgramAreItsOwn(t *testing.T) {
	for _, args := range [][]string{
		{"run", "echo", "--report", "-x"},
		{"run", "--name", "n", "--", "echo", "--report", "-x"},
	} {
		v := stallspan(t, args...)
		if code := v.run(); code != 0 || v.out.String() != "--report -x\n" {
			t.Errorf("%q: exit code %d: %q %q", args, code, v.out.String(), v.err.String())
		}
	}
}

// A program that only waits for its disk is slow. Whether it is depends on the machine, but the exit code and the
// report agree.
func TestFailOnSlow(t *testing.T) {
	dir, err := os.MkdirTemp(".", "slow") // on a disk more likely than the folder for temporary files
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	data, report := filepath.Join(dir, "data"), filepath.Join(dir, "report.json")
	if err := os.WriteFile(data, randomBytes(32<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	v := stallspan(t, "run", "--fail-on", "slow", "--report", report, "--", "dd", "if="+data, "of=/dev/null", "bs=4k",
		"count=5000", "iflag=direct")
	code := v.run()
	if code == 1 {
		t.Skipf("needs a disk that can be read around the page cache: %s", v.err.String())
	}
	want := 0
	if d := readReport(t, report); d.Windows[0].Slow {
		want = cli.ExitSlow
	}
	if code != want {
		t.Errorf("exit code %d, by the report %d: %s", code, want, v.err.String())
	}
	if code == 0 {
		t.Logf("not slow here: %s", v.err.String())
	}
}

// A folder that demo cannot use is refused before it says what it does.
func TestDemoRefuses(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	v := stallspan(t, "demo", "--dir", file)
	const want = "is no folder: pass --dir with a folder on a real disk"
	if code := v.run(); code != cli.ExitFailed || !strings.Contains(v.err.String(), want) ||
		strings.Contains(v.err.String(), "Writing") {
		t.Errorf("got exit code %d, %s; want %d, %q alone", code, &v.err, cli.ExitFailed, want)
	}
}
