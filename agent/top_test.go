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

// become waits for a screen that is as in a file.
func (m *tmux) become(golden string) {
	m.t.Helper()
	text, err := os.ReadFile(golden)
	if err != nil {
		m.t.Fatal(err)
	}
	var got string
	for end := time.Now().Add(slowest / 4); time.Now().Before(end); time.Sleep(30 * time.Millisecond) {
		if got = m.screen(); got == string(text) {
			return
		}
	}
	m.t.Errorf("not as in %s: got\n%s\nwant\n%s", golden, got, text)
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

// screens is the folder of the expected screens.
const screens = "internal/top/testdata/"

// epochs is a recording with windows.
func epochs(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs(screens + "epochs.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// A recording is shown on a real terminal as it is drawn in memory, for several sizes and after keys. q and SIGTERM
// leave the terminal as it was.
func TestTopOverRecording(t *testing.T) {
	t.Parallel()
	m := inTmux(t, 120, 40)
	file := epochs(t)
	m.line(fmt.Sprintf("%s top --from %s", os.Args[0], file))
	m.until("WINDOW")
	m.press("End")
	m.until("9 s of 9 s PAUSED")
	m.press("p") // it is at its end
	m.become(screens + "epochs_120x40.txt")
	for _, size := range [][2]int{{60, 16}, {80, 24}, {200, 50}, {250, 60}} {
		m.call("resize-window", "-x", fmt.Sprint(size[0]), "-y", fmt.Sprint(size[1]))
		m.become(fmt.Sprintf("%sepochs_%dx%d.txt", screens, size[0], size[1]))
	}
	m.call("resize-window", "-x", "120", "-y", "30")
	m.press("Left", "Left", "Left")
	m.become(screens + "epochs_back.txt")
	m.call("resize-window", "-x", "100", "-y", "30")
	m.press("Enter")
	m.become(screens + "epochs_details.txt")
	m.press("Escape", "End", "p", "h")
	m.become(screens + "epochs_help.txt")
	m.press("q", "q")
	m.until("prompt>")
	m.restored()

	m.line(fmt.Sprintf("clear; (sleep 3; pkill -TERM -P $$ agent.test) & %s top --from %s; echo code $?", os.Args[0],
		file))
	m.until("code 0")
	m.restored()
}

// ^Z gives the terminal back, and fg goes on.
func TestTopStopsAndGoesOn(t *testing.T) {
	t.Parallel()
	m := inTmux(t, 100, 30)
	file := fixture.File(t, "recordings", "cpu_only.jsonl.gz")
	m.line(fmt.Sprintf("%s top --from %s", os.Args[0], file))
	m.until("WINDOW")
	m.press("End")
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

	m.line("clear; (sleep 3; pkill -TSTP -P $$ agent.test) & " + os.Args[0] + " top --from " + file)
	m.until("Stopped", "prompt>")
	m.line("clear; fg")
	m.until("WINDOW", "END")
	m.press("q")
	m.until("prompt>")
	m.restored()
}

// NO_COLOR and --color are obeyed, and a locale without UTF-8 gets ASCII.
func TestTopColors(t *testing.T) {
	t.Parallel()
	file := epochs(t)
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
		m := inTmux(t, 120, 30, test.environment)
		m.line(fmt.Sprintf("%s top %s --from %s", os.Args[0], test.flags, file))
		m.until("WINDOW")
		m.press("End")
		m.until("9 s of 9 s PAUSED")
		text := m.call("capture-pane", "-p", "-e")
		if colors := strings.Contains(text, "\x1b[31m") || strings.Contains(text, "\x1b[32m"); colors != test.colors {
			t.Errorf("%s %s: got colours %v, want %v: %q", test.environment, test.flags, colors, test.colors, text)
		}
		if test.ascii {
			m.press("p")
			m.become(screens + "epochs_ascii.txt")
		}
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
	file := fixture.File(t, "recordings", "gpu.jsonl.gz")
	for args, want := range map[string]string{
		"top":                            "top needs a terminal: use stallspan stat for a file or a pipe",
		"top --color red":                "give auto, always or never",
		"top --interval 0.01":            "--interval 10ms: choose 100ms to 1m0s",
		"top train.py --from " + file:    "leave train.py out",
		"top" + strings.Repeat(" 1", 17): "17 processes: top follows at most 16",
		"top --interval soon":            `--interval "soon": give seconds`,
	} {
		v := stallspan(t, strings.Fields(args)...)
		if code := v.run(); code != cli.ExitUsage || !strings.Contains(v.errorLine(), want) || v.out.Len() > 0 {
			t.Errorf("%s: got exit code %d, %s%s; want %d, %s", args, code, v.errorLine(), &v.out, cli.ExitUsage, want)
		}
	}
}
