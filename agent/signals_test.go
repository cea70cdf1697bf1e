package agent

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/agent/internal/cli"
	"github.com/stallspan/stallspan/agent/internal/wrap"
)

// counter is a program that prints the signals it gets. After an empty line it prints their number, and exits with 5.
const counter = `
import os, select, signal, sys, time
counts = {}
def count(number, frame):
    name = signal.Signals(number).name
    counts[name] = counts.get(name, 0) + 1
    os.write(1, b"got %s %d\n" % (name.encode(), counts[name]))
for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2):
    signal.signal(s, count)
os.write(1, b"ready %d\n" % os.getpid())
while not select.select([0], [], [], 0.05)[0]:
    pass  # a handler whose signal came just before a call that blocks would wait for that call
time.sleep(0.1)  # for a signal that comes twice
os.write(1, b"counts %s\n" % repr(sorted(counts.items())).encode())
sys.exit(5)
`

// counting runs the counter, and returns its output and its input.
func counting(t *testing.T) (v *invocation, out *liveOutput, in io.WriteCloser) {
	t.Helper()
	v = stallspan(t, "run", "--", python(t), "-c", counter)
	out = &liveOutput{}
	v.Stdout = out
	in, err := v.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	return v, out, in
}

func TestSignalsReachTheProgramOnce(t *testing.T) {
	t.Parallel()
	v, out, in := counting(t)
	v.start()
	out.until(t, 1, "ready")
	var want []string
	for _, s := range []syscall.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGUSR1, unix.SIGUSR2} {
		if err := v.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		out.until(t, 1, "got "+unix.SignalName(s)+" 1")
		want = append(want, fmt.Sprintf("('%s', 1)", unix.SignalName(s)))
	}
	if _, err := io.WriteString(in, "\n"); err != nil {
		t.Fatal(err)
	}
	if code := v.wait(); code != 5 || !strings.Contains(out.String(), "counts ["+strings.Join(want, ", ")+"]") {
		t.Errorf("exit code %d: %s", code, out.String())
	}
}

func TestSecondInterruptToo(t *testing.T) {
	t.Parallel()
	v, out, in := counting(t)
	v.start()
	out.until(t, 1, "ready")
	for n := range 3 {
		if err := v.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		out.until(t, 1, fmt.Sprint("got SIGINT ", n+1))
	}
	if _, err := io.WriteString(in, "\n"); err != nil {
		t.Fatal(err)
	}
	if code := v.wait(); code != 5 || !strings.Contains(out.String(), "counts [('SIGINT', 3)]") {
		t.Errorf("exit code %d: %s", code, out.String())
	}
}

// A program without signal handlers is killed by signals, and the run prints its report.
func TestSignalEndsTheProgram(t *testing.T) {
	t.Parallel()
	for _, s := range []syscall.Signal{unix.SIGTERM, unix.SIGINT} {
		v := stallspan(t, "run", "--report", "/dev/stderr", "--", "sh", "-c", "echo Epoch 1/2; exec sleep 60")
		out := &liveOutput{}
		v.Stdout = out
		v.start()
		out.until(t, 1, "Epoch")
		began := time.Now()
		if err := v.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		if code := v.wait(); code != cli.ExitSignalBase+int(s) || time.Since(began) > slowest/3 {
			t.Errorf("%v: exit code %d after %v", s, code, time.Since(began))
		}
		_, text, _ := strings.Cut(v.err.String(), "\n{\n")
		d := parseReport(t, []byte("{"+text))
		if len(d.Windows) != 1 || !d.Windows[0].Unfinished || d.Windows[0].label() != "epoch 1" {
			t.Errorf("%v: got %s, want epoch 1, cut", s, text)
		}
	}
}

// A program does not start after a signal that came before.
func TestSignalBeforeTheProgram(t *testing.T) {
	t.Parallel()
	for _, s := range []syscall.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGHUP} {
		for _, wait := range []time.Duration{50 * time.Millisecond, 300 * time.Millisecond} {
			marker := filepath.Join(t.TempDir(), "began")
			v := stallspan(t, "run", "--", "sh", "-c", "echo >"+marker+"; exec sleep 60")
			v.start()
			time.Sleep(wait)
			began := time.Now()
			if err := v.Process.Signal(s); err != nil {
				t.Fatal(err)
			}
			_ = v.Wait() // its error only repeats the state; the signal itself ends a stallspan that has not begun
			code := wrap.ShellCode(v.ProcessState)
			if code != cli.ExitSignalBase+int(s) || time.Since(began) > slowest/3 {
				t.Errorf("%v after %v: exit code %d after %v: %q", s, wait, code, time.Since(began), v.err.String())
			}
			if _, err := os.Stat(marker); err == nil && strings.Contains(v.err.String(), "came before the program began") {
				t.Errorf("%v after %v: the program began, and stderr says %q", s, wait, v.err.String())
			}
		}
	}
}

// Signals that nohup or a shell ignores stay ignored, by us and by the program.
func TestIgnoredSignalsStayIgnored(t *testing.T) {
	t.Parallel()
	v := stallspan(t)
	v.Path = "/bin/sh"
	v.Args = []string{"sh", "-c", `trap "" HUP INT; exec "$0" "$@"`, os.Args[0],
		"run", "--", "sh", "-c", "grep SigIgn /proc/self/status; echo ready; read line"}
	out := &liveOutput{}
	v.Stdout = out
	in, err := v.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	v.start()
	out.until(t, 1, "ready")
	for _, s := range []syscall.Signal{unix.SIGHUP, unix.SIGINT} {
		if err := v.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(50 * time.Millisecond)
	if _, err := io.WriteString(in, "\n"); err != nil {
		t.Fatal(err)
	}
	if code := v.wait(); code != 0 {
		t.Errorf("exit code %d: %s", code, v.err.String())
	}
	var ignored uint64
	if _, err := fmt.Sscanf(out.String(), "SigIgn: %x", &ignored); err != nil {
		t.Fatalf("got the error %v, want none: %q", err, out.String())
	}
	if want := uint64(1)<<(unix.SIGHUP-1) | 1<<(unix.SIGINT-1); ignored&want != want {
		t.Errorf("the program ignores %#x", ignored)
	}
	if ignored&(1<<(unix.SIGPIPE-1)) != 0 {
		t.Errorf("the program ignores a broken pipe: %#x", ignored)
	}
}
