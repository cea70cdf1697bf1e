package agent

import (
	"strings"
	"testing"

	"github.com/stallspan/stallspan/agent/internal/cli"
	"github.com/stallspan/stallspan/agent/internal/output"
)

func TestColorFlag(t *testing.T) {
	t.Parallel()
	for when, want := range map[string]bool{"always": true, "never": false, "auto": false} {
		v := stallspan(t, "--color", when, "check")
		if v.run(); strings.Contains(v.out.String(), "\x1b[") != want {
			t.Errorf("--color %s to a file: got %q, want colours: %v", when, v.out.String(), want)
		}
	}
	v := stallspan(t, "--color", "red", "check")
	if code := v.run(); code != cli.ExitUsage || !strings.Contains(v.errorLine(), "give auto, always or never") {
		t.Errorf("got exit code %d, %s, want %d", code, v.errorLine(), cli.ExitUsage)
	}
	onTerminal := stallspan(t, "check")
	onTerminal.Env = append(onTerminal.Env, "NO_COLOR=", "TERM=xterm")
	s := onScreen(t, onTerminal)
	if s.end(onTerminal); !strings.Contains(s.String(), "\x1b[") {
		t.Errorf("on a terminal: got %q, want colours", s.String())
	}
	plain := stallspan(t, "check")
	plain.Env = append(plain.Env, "NO_COLOR=1", "TERM=xterm")
	s = onScreen(t, plain)
	if s.end(plain); strings.Contains(s.String(), "\x1b[") {
		t.Errorf("on a terminal with NO_COLOR: got %q, want no colours", s.String())
	}
}

// Help wraps at the terminal's width. Examples and usage lines stay whole, to be copied.
func TestHelpWraps(t *testing.T) {
	for _, width := range []int{60, 80} {
		for _, name := range []string{"check", "health", "stat"} {
			cmd, _, err := Command().Find([]string{name})
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(reflow(cmd.Long, width)) {
				if got := output.Columns(strings.TrimSuffix(line, "\n")); got > width {
					t.Errorf("%s: got %d columns, want at most %d: %s", name, got, width, line)
				}
			}
		}
	}
	const text = "One two\nthree.\n\n  kept as is\nFour."
	if got, want := reflow(text, 9), text+"\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
