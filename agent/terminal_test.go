package agent

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
)

func TestProgramOnATerminal(t *testing.T) {
	t.Parallel()
	v := stallspan(t, "run", "--", python(t), "-c", `
import os, sys
print([os.isatty(fd) for fd in (0, 1, 2)], os.get_terminal_size(1), os.environ.get("PYTHONUNBUFFERED"))
for percent in (10, 50, 100):
    print("\r%3d %%" % percent, end="")
print()
print("to stderr", file=sys.stderr)
print("\tEpoch 1/2")
`)
	s := onScreen(t, v)
	if code := s.end(v); code != 0 {
		t.Errorf("exit code %d", code)
	}
	text := s.String()
	for _, want := range []string{
		"[True, True, True] os.terminal_size(columns=100, lines=40) None\r\n",
		"\r 10 %\r 50 %\r100 %\r\nto stderr\r\n\tEpoch 1/2\r\n", // the terminal's own \r, and no second one
		"\r\nepoch 1 ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %q", want, text)
		}
	}
	if strings.Contains(text, "\r\r") {
		t.Errorf("two carriage returns: %q", text)
	}
}

// Only one of the outputs may be a terminal.
func TestHalfATerminal(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ command, want string }{
		{"run -- %s 2>$TMPDIR/other; cat $TMPDIR/other", "out tty err no []"},
		{"run -- %s >$TMPDIR/other; cat $TMPDIR/other", "out no err tty [1]"},
	} {
		const child = `sh -c 'test -t 1 && o=tty || o=no; test -t 2 && e=tty || e=no; echo out $o err $e [$PYTHONUNBUFFERED]'`
		v := stallspan(t)
		v.Path, v.Args = "/bin/sh", []string{"sh", "-c", os.Args[0] + " " + fmt.Sprintf(test.command, child)}
		s := onScreen(t, v)
		if code := s.end(v); code != 0 || !strings.Contains(s.String(), test.want) {
			t.Errorf("exit code %d: %q", code, s.String())
		}
	}
}

func TestTerminalLosesNothing(t *testing.T) {
	t.Parallel()
	var data bytes.Buffer
	for n := range 40_000 {
		fmt.Fprintf(&data, "line %d of a program that prints a lot\n", n)
	}
	path := t.TempDir() + "/data"
	if err := os.WriteFile(path, data.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	v := stallspan(t, "run", "--quiet", "--", "cat", path)
	s := onScreen(t, v)
	if code := s.end(v); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if want := strings.ReplaceAll(data.String(), "\n", "\r\n"); !strings.HasPrefix(s.String(), want) {
		t.Errorf("%d bytes of %d, or others", len(s.String()), len(want))
	}
}

// ^C reaches the whole foreground group. The program must not get it a second time from us.
func TestCtrlC(t *testing.T) {
	t.Parallel()
	v := stallspan(t, "run", "--", python(t), "-c", counter)
	s := onScreen(t, v)
	s.until(t, 1, "ready")
	for n := range 2 {
		s.press(t, "\x03")
		s.until(t, 1, fmt.Sprint("got SIGINT ", n+1))
	}
	s.press(t, "\n")
	if code := s.end(v); code != 5 || !strings.Contains(s.String(), "counts [('SIGINT', 2)]") {
		t.Errorf("exit code %d: %q", code, s.String())
	}
	if !strings.Contains(s.String(), "verdict") {
		t.Errorf("no table: %q", s.String())
	}
}

func TestWindowSize(t *testing.T) {
	t.Parallel()
	v := stallspan(t, "run", "--", python(t), "-c", `
import os, select, signal
def resized(number, frame):
    size = os.get_terminal_size(1)
    os.write(1, b"size %d %d\n" % (size.columns, size.lines))
signal.signal(signal.SIGWINCH, resized)
os.write(1, b"ready\n")
while not select.select([0], [], [], 0.05)[0]:
    pass  # a handler whose signal came just before a call that blocks would wait for that call
`)
	s := onScreen(t, v)
	s.until(t, 1, "ready")
	for columns := uint16(81); columns < 91; columns++ { // the program gets the signal before we can resize its terminal
		if err := pty.Setsize(s.keys, &pty.Winsize{Rows: 25, Cols: columns}); err != nil {
			t.Fatal(err)
		}
		s.until(t, 1, fmt.Sprintf("size %d 25", columns))
	}
	s.press(t, "\n")
	if code := s.end(v); code != 0 {
		t.Errorf("exit code %d: %q", code, s.String())
	}
}

// Job control works: ^Z stops the program and us, fg continues both.
func TestStopAndGoOn(t *testing.T) {
	t.Parallel()
	shell, err := exec.LookPath("bash")
	if err != nil {
		t.Skipf("needs bash, for job control: %v", err)
	}
	v := stallspan(t)
	v.Path, v.Args = shell, []string{"bash", "--norc", "--noprofile", "-i"}
	v.Env = append(v.Env, "PS1=prompt> ", "HISTFILE=", "TERM=dumb")
	script := t.TempDir() + "/count.py"
	if err := os.WriteFile(script, []byte(counter), 0o600); err != nil {
		t.Fatal(err)
	}
	s := onScreen(t, v)
	s.until(t, 1, "prompt> ")
	s.press(t, fmt.Sprintf("%s run -- %s %s\n", os.Args[0], python(t), script))
	s.until(t, 1, "ready ")
	_, text, _ := strings.Cut(s.String(), "ready ")
	var pid int
	if _, err := fmt.Sscan(text, &pid); err != nil {
		t.Fatalf("got the error %v, want none: %q", err, s.String())
	}
	s.press(t, "\x1a")
	s.until(t, 1, "Stopped")
	if state := stateOf(t, pid); state != "T" {
		t.Errorf("the program is in state %s", state)
	}
	s.press(t, "fg\n")
	for end := time.Now().Add(slowest / 2); stateOf(t, pid) == "T"; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the program does not go on: %q", s.String())
		}
	}
	s.press(t, "\x03")
	s.until(t, 1, "got SIGINT 1")
	s.press(t, "\n")
	s.until(t, 1, "counts [('SIGINT', 1)]")
	s.until(t, 1, "verdict")
	s.until(t, 3, "prompt> ")
	s.press(t, "echo code $?; exit\n")
	if code := s.end(v); code != 0 || !strings.Contains(s.String(), "\ncode 5") {
		t.Errorf("exit code %d: %q", code, s.String())
	}
}

// stateOf is a process's state in /proc/PID/stat: T if it is stopped.
func stateOf(t *testing.T, pid int) string {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	return fields[0]
}
