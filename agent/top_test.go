package agent

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stallspan/stallspan/agent/internal/cli"
	"github.com/stallspan/stallspan/test/fixture"
)

// tmux is a real terminal, with a shell in it.
type tmux struct {
	t      *testing.T
	socket string
}

// inTmux starts a terminal with an interactive shell. environment is of that shell.
func inTmux(t *testing.T, width, height int, environment ...string) *tmux {
	t.Helper()
	for _, tool := range []string{"tmux", "bash"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("needs %s: %v", tool, err)
		}
	}
	folder, err := os.MkdirTemp("", "st") // short: a socket's path has 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	m := &tmux{t, filepath.Join(folder, "s")}
	config := filepath.Join(folder, "config")
	if err := os.WriteFile(config, []byte("set -g default-terminal tmux-256color\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"-f", config, "new-session", "-d", "-x", fmt.Sprint(width), "-y", fmt.Sprint(height), "env"}
	for _, name := range []string{"NO_COLOR", "STALLSPAN_SOCKET", "STALLSPAN_ENDPOINT", "LC_ALL", "LC_CTYPE"} {
		args = append(args, "-u", name)
	}
	args = append(args, "LANG=C.UTF-8", "PS1=prompt> ", "HISTFILE=", actAs+"=stallspan", "TMPDIR="+folder,
		"XDG_RUNTIME_DIR="+folder, "XDG_STATE_HOME="+folder)
	m.call(append(append(args, environment...), "bash", "--norc", "--noprofile", "-i")...)
	t.Cleanup(func() {
		m.call("kill-server")
		_ = os.RemoveAll(folder)
	})
	m.until("prompt>")
	return m
}

func (m *tmux) call(args ...string) string {
	m.t.Helper()
	cmd := exec.Command("tmux", append([]string{"-u", "-S", m.socket}, args...)...)
	var out, problem bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problem
	if err := cmd.Run(); err != nil {
		m.t.Fatalf("tmux %v: got the error %v, want none: %s", args, err, &problem)
	}
	return out.String()
}

// line types a command.
func (m *tmux) line(text string) {
	m.t.Helper()
	m.call("send-keys", "-l", text)
	m.call("send-keys", "Enter")
}

func (m *tmux) press(keys ...string) {
	m.t.Helper()
	for _, key := range keys {
		m.call("send-keys", key)
	}
}

// screen is what the terminal shows, without blanks at the ends of lines.
func (m *tmux) screen() string {
	m.t.Helper()
	var lines strings.Builder
	for line := range strings.Lines(m.call("capture-pane", "-p")) {
		lines.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return lines.String()
}

// until waits for a screen that holds all of these texts.
func (m *tmux) until(texts ...string) string {
	m.t.Helper()
	var got string
	for end := time.Now().Add(slowest); time.Now().Before(end); time.Sleep(30 * time.Millisecond) {
		got = m.screen()
		missing := false
		for _, text := range texts {
			missing = missing || !strings.Contains(got, text)
		}
		if !missing {
			return got
		}
	}
	m.t.Fatalf("got the screen\n%s\nwant %q in it", got, texts)
	return ""
}

// restored reports a terminal that is not as before top: in the other screen, without echo, or with a hidden cursor.
func (m *tmux) restored() {
	m.t.Helper()
	m.line("echo here; stty -a | grep -o -w -e '-*echo' -e '-*icanon' -e '-*isig' | tr '\\n' ' '")
	got := m.until("\nisig icanon echo")
	state := strings.TrimSpace(m.call("display-message", "-p", "#{alternate_on} #{cursor_flag} #{mouse_any_flag}"))
	if state != "0 1 0" {
		m.t.Errorf("alternate screen, cursor, mouse: got %s, want 0 1 0; the terminal shows\n%s", state, got)
	}
}

// ^Z gives the terminal back, and fg goes on. So do ^C and SIGTERM, which end top.
func TestTopStopsAndGoesOn(t *testing.T) {
	t.Parallel()
	m := inTmux(t, 100, 30)
	m.line(os.Args[0] + " top")
	m.until("WINDOW")
	m.press("p")
	m.until("PAUSED")
	for range 2 {
		m.press("C-z")
		m.until("Stopped", "prompt>")
		m.restored()
		m.line("clear; fg")
		m.until("WINDOW", "PAUSED")
	}
	m.line("") // no key
	m.press("C-c")
	m.until("prompt>")
	m.restored()

	m.line("clear; (sleep 3; pkill -TSTP -P $$ agent.test) & " + os.Args[0] + " top")
	m.until("Stopped", "prompt>")
	m.line("clear; fg")
	m.until("WINDOW")
	m.press("q")
	m.until("prompt>")
	m.restored()

	m.line("clear; (sleep 3; pkill -TERM -P $$ agent.test) & " + os.Args[0] + " top; echo code $?")
	m.until("code 0")
	m.restored()
}

// NO_COLOR and --color are obeyed, and a locale without UTF-8 gets ASCII.
func TestTopColors(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		environment, flags string
		colors, ascii      bool
	}{
		{"NO_COLOR=", "", true, false},
		{"NO_COLOR=1", "", false, false},
		{"NO_COLOR=1", "--color=always", true, false},
		{"NO_COLOR=", "--color=never", false, false},
		{"LANG=C", "", true, true},
	} {
		m := inTmux(t, 200, 30, test.environment)
		m.line("(while :; do :; done) & job=$!")
		m.line(fmt.Sprintf("clear; %s top %s $job", os.Args[0], test.flags))
		bar := "█"
		if test.ascii {
			bar = "###"
		}
		m.until("WINDOW", "WHY", bar)
		m.press("p")
		m.until("PAUSED", bar)
		text := m.call("capture-pane", "-p", "-e")
		if colors := strings.Contains(text, "\x1b[31m") || strings.Contains(text, "\x1b[32m"); colors != test.colors {
			t.Errorf("%s %s: got colours %v, want %v: %q", test.environment, test.flags, colors, test.colors, text)
		}
		if other := strings.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII }); other == test.ascii {
			t.Errorf("%s %s: got only ASCII %v, want %v: %q", test.environment, test.flags, !other, test.ascii, text)
		}
		m.press("q")
		m.until("prompt>")
		m.line("kill $job; wait; clear; echo over")
		m.until("over")
	}
}

// The live view names the GPUs, the job that waits, why, and its epochs.
func TestTopLive(t *testing.T) {
	t.Parallel()
	library := fixture.NVML(t)
	folder := t.TempDir()
	job := filepath.Join(folder, "job.py")
	if err := os.WriteFile(job, []byte(`
import subprocess, time
child = subprocess.Popen(["cat"], stdin=subprocess.PIPE) # it ends with this program
for epoch in range(1, 100):
    end = time.monotonic() + 1
    while time.monotonic() < end:
        pass
    print("Epoch %d/100" % epoch, flush=True)
`), 0o600); err != nil {
		t.Fatal(err)
	}
	m := inTmux(t, 120, 40, "LD_LIBRARY_PATH="+filepath.Dir(library), "FAKENVML_FILE="+folder+"/gpus")
	m.line(fmt.Sprintf("%s run --quiet -- %s %s > /dev/null 2>&1 & pid=$!", os.Args[0], python(t), job))
	m.line(fmt.Sprintf("child=; until [ -n \"$child\" ]; do "+
		"sleep 0.2; child=$(pgrep -f 'job.py$' -P $pid | head -1); done; "+
		"echo gpu 0 utilization=37 memory_used=21474836480 processes=$child:1073741824 > %s/gpus.new", folder))
	m.line(fmt.Sprintf("echo gpu 1 utilization=98 >> %s/gpus.new; mv %[1]s/gpus.new %[1]s/gpus; clear; "+
		"%s top job.py --interval 0.5", folder, os.Args[0]))
	m.until("Fake 100", " 37 ", " 98 ", "20.0/80.0", "job.py ", "WHY job.py", "The GPU was busy", "epoch 1")
	m.press("p")
	m.until("PAUSED")
	m.press("Enter")
	m.until("JOB job.py", "since watched", "Evidence: ", "PID")
	m.press("F5")
	m.until("PROCESSES of job.py", " 1024  ", "└─ cat")
	m.press("t") // as F5
	m.until("WHY job.py")
	m.press("q")
	m.until("prompt>")
	m.restored()
	m.line("kill $pid; wait; clear; echo over")
	m.until("over")
}

// What top does not do is one line, with the way out.
func TestTopErrors(t *testing.T) {
	for args, want := range map[string]string{
		"top":                            "top needs a terminal: use stallspan stat for a file or a pipe",
		"top --color red":                "give auto, always or never",
		"top --interval 0.01":            "--interval 10ms: choose 100ms to 1m0s",
		"top" + strings.Repeat(" 1", 17): "17 processes: top follows at most 16",
		"top --interval soon":            `--interval "soon": give seconds`,
	} {
		v := stallspan(t, strings.Fields(args)...)
		if code := v.run(); code != cli.ExitUsage || !strings.Contains(v.errorLine(), want) || v.out.Len() > 0 {
			t.Errorf("%s: got exit code %d, %s%s; want %d, %s", args, code, v.errorLine(), &v.out, cli.ExitUsage, want)
		}
	}
}
