package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stallspan/stallspan/agent/internal/cli"
)

func savedReport(name string) string { return filepath.Join("..", "testdata", "reports", name+".json") }

func TestCompareExitCodes(t *testing.T) {
	folder := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	fast, slow := savedReport("train-memory"), savedReport("train-disk")
	again := func(path string) string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return file(filepath.Base(path), string(text))
	}
	fastAgain, slowAgain, linked := again(fast), again(slow), filepath.Join(folder, "linked")
	if path, err := filepath.Abs(fast); err != nil || os.Symlink(path, linked) != nil {
		t.Fatal("no link")
	}
	one, cut := file("one", `{"kind":"epoch","duration_s":1}`), file("cut",
		`{"kind":"epoch","duration_s":1,"unfinished":true}`)
	for _, test := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{fast, slow}, 0, ""},
		{[]string{slow, fast, "--fail-on", "slower"}, 0, ""},
		{[]string{fast, slow, "--fail-on", "slower"}, cli.ExitSlow, "slower by more than 10 %: epoch 1, epoch 2"},
		{[]string{fast, slow, "--fail-on", "slower", "--threshold", "100 %"}, cli.ExitSlow, "slower by more than 100 %: epoch 1"},
		{[]string{fast, slow, "--fail-on", "slower", "--threshold", "5000%", "--json"}, 0, ""},
		{[]string{one, cut, "--fail-on", "slower"}, cli.ExitFailed, "no window is complete in both reports"},
		{[]string{one, cut}, 0, ""},
		{[]string{fast}, cli.ExitUsage, "compare needs two reports: stallspan compare A.json B.json"},
		{[]string{fast, slow, slow}, cli.ExitUsage, "compare needs two reports"},
		{[]string{"--before", fast, slow}, cli.ExitUsage, "give all reports with --before and --after"},
		{[]string{"--before", fast}, cli.ExitUsage, "give reports with both --before and --after"},
		{[]string{"--json", "--markdown", "-", fast, slow}, cli.ExitUsage, "both write to standard output"},
		{[]string{"--before", fast, "--after", strings.Repeat(slow+",", 101) + slow}, cli.ExitUsage, "at most 100 reports"},
		{[]string{"--before", fast, "--after", slow + "," + slowAgain, "--fail-on", "slower"}, cli.ExitSlow, "too few runs"},
		{[]string{"--before", fast + "," + fastAgain, "--after", fast + "," + fastAgain, "--fail-on", "slower"}, 0, ""},
		{[]string{"--before", fast + "," + linked, "--after", slow}, cli.ExitUsage, "--before has " + linked + " twice"},
		{[]string{fast, slow, "--fail-on", "slow"}, cli.ExitUsage, "--fail-on \"slow\": the only choice is slower"},
		{[]string{fast, slow, "--fail-on", "slower", "--threshold", "0.1"}, cli.ExitUsage,
			"--threshold \"0.1\": give a percentage such as 10%"},
		{[]string{fast, slow, "--fail-on", "slower", "--threshold", "NaN%"}, cli.ExitUsage, "give a percentage"},
		{[]string{fast, slow, "--threshold", "5%"}, cli.ExitSlow, "slower by more than 5 %"},
		{[]string{fast, folder}, cli.ExitFailed, "is a directory"},
		{[]string{folder + "/none", fast}, cli.ExitFailed,
			"/none cannot be read, give a report of run --report: no such file or directory"},
		{[]string{file("text", "window duration"), fast}, cli.ExitFailed,
			"text is not a report of run --report: it is not JSON: see byte 1"},
	} {
		v := stallspan(t, append([]string{"compare"}, test.args...)...)
		if code := v.run(); code != test.code {
			t.Errorf("%q: exit code %d: %s", test.args, code, v.err.String())
		}
		if test.says == "" && v.err.Len() > 0 {
			t.Errorf("%q: got %s, want no error", test.args, v.err.String())
		}
		if test.says != "" && !strings.Contains(v.errorLine(), test.says) {
			t.Errorf("%q: got %s, want %s", test.args, v.err.String(), test.says)
		}
	}
}
