package agent

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/agent/internal/cli"
	"github.com/stallspan/stallspan/internal/api"
)

// marked runs a program with mark run and a listener.
func marked(t *testing.T, argv ...string) (*invocation, *listener) {
	t.Helper()
	l := listen(t)
	v := stallspan(t, append([]string{"mark", "run", "--kind", "epoch", "--"}, argv...)...)
	v.Env = append(v.Env, api.SocketVariable+"="+l.path, actAs+"="+patient)
	return v, l
}

func TestMarkRunPassesBytesThrough(t *testing.T) {
	t.Parallel()
	data := randomBytes(5 << 20)
	v, l := marked(t, "tee", "/dev/stderr")
	v.Stdin = bytes.NewReader(data)
	if code := v.run(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if !bytes.Equal(v.out.Bytes(), data) {
		t.Errorf("standard output: %d bytes of %d", v.out.Len(), len(data))
	}
	line, ok := bytes.CutPrefix(v.err.Bytes(), data)
	if want := "stallspan: epoch 3: 4.8 s, storage_bound SLOW. It ?[31mwaited.\n"; !ok || string(line) != want {
		t.Errorf("standard error: %d bytes of %d", v.err.Len(), len(data)+len(want))
	}
	if a := l.only(t); a.PID != v.Process.Pid || strings.Join(l.ends, " ") != "id1" {
		t.Errorf("announced %+v, ended %v; its pid is %d", a, l.ends, v.Process.Pid)
	}
}

func TestMarkRunExitCodes(t *testing.T) {
	t.Parallel()
	said := map[int]string{0: "", 7: `{"failed":true,"ended":"exit code 7"}`,
		137: `{"failed":true,"ended":"SIGKILL"}`,
		143: `{"ended":"SIGTERM"}`}
	for command, want := range map[string]int{"exit 0": 0, "exit 7": 7, "kill -KILL $$": 137, "kill -TERM $$": 143} {
		v, l := marked(t, "sh", "-c", command)
		if code := v.run(); code != want || len(l.ends) != 1 {
			t.Errorf("%s: exit code %d, ended %v: %s", command, code, l.ends, v.err.String())
		}
		if got := l.lastBody(); got != said[want] {
			t.Errorf("%s: said %q at its end, want %q", command, got, said[want])
		}
	}
	for program, want := range map[string]int{"stallspan-no-such-program": cli.ExitNotFound, "/": cli.ExitCannotRun} {
		v, l := marked(t, program)
		if code := v.run(); code != want || len(l.ends) != 1 || !strings.Contains(v.errorLine(), program+": ") {
			t.Errorf("%s: exit code %d, ended %v: %s", program, code, l.ends, v.err.String())
		}
		if got, said := l.lastBody(), `{"failed":true,"ended":"the program could not be started"}`; got != said {
			t.Errorf("%s: said %q at its end, want %q", program, got, said)
		}
	}
}

// The finding is printed, and what to try.
func TestMarkRunSaysWhySlow(t *testing.T) {
	t.Parallel()
	v, l := marked(t, "true")
	l.mu.Lock()
	l.said = `{"kind":"model_load","model":"m","duration_s":4.8,"verdict":"unknown","slow":true,"slowness_reason":"baseline",` +
		`"unfinished":true,"finding":"It took 4.8 s where 1.0 s is usual (p95 of 5 loads).",` +
		`"remedy":"Read ahead."}`
	l.mu.Unlock()
	want := "stallspan: load m (part): 4.8 s, unknown SLOW. It took 4.8 s where 1.0 s is usual (p95 of 5 loads)."
	if code := v.run(); code != 0 || v.err.String() != want+"\nstallspan: try: Read ahead.\n" {
		t.Errorf("exit code %d: %s", code, v.err.String())
	}
}

// The program gets the window's span, the agent's socket, and its own flags.
func TestMarkRunEnvironment(t *testing.T) {
	t.Parallel()
	v, l := marked(t, "sh", "-c", `echo $TRACEPARENT $STALLSPAN_SOCKET $0 $1`, "--kind", "-x")
	v.Env = append(v.Env, "TRACEPARENT=00-0af7651916cd43dd8448eb211c80319c-2222222222222222-01")
	if code := v.run(); code != 0 || v.out.String() != itsSpan+" "+l.path+" --kind -x\n" {
		t.Errorf("exit code %d: %q", code, v.out.String())
	}
	if a := l.only(t); !strings.Contains(a.Traceparent, "-2222222222222222-") {
		t.Errorf("announced %+v", a)
	}
}

// An agent that is missing, refuses, hangs or answers with garbage never stops the program.
func TestMarkRunWithoutAnAgent(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "st")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	hung, err := net.Listen("unix", filepath.Join(dir, "hung")) // it accepts connections and never answers
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hung.Close() })
	for path, want := range map[string]string{
		filepath.Join(dir, "none"): "no agent answers at " + filepath.Join(dir, "none") +
			": start stallspan agent or a Collector",
		filepath.Join(dir, "hung"): "did not answer in time",
	} {
		v := stallspan(t, "mark", "run", "--kind", "custom", "--", "sh", "-c", "cat; exit 9")
		v.Env = append(v.Env, api.SocketVariable+"="+path)
		v.Stdin = strings.NewReader("work\n")
		if code := v.run(); code != 9 || v.out.String() != "work\n" {
			t.Errorf("%s: exit code %d: %q", path, code, v.out.String())
		}
		if line := v.errorLine(); !strings.Contains(line, "the program runs without a window: ") ||
			!strings.Contains(line, want) {
			t.Errorf("%s: got %s, want a warning with %s", path, line, want)
		}
	}
}

func TestMarkRunPassesSignalsOn(t *testing.T) {
	t.Parallel()
	v, l := marked(t, python(t), "-c", counter)
	out := &liveOutput{}
	v.Stdout = out
	in, err := v.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
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
	if len(l.ends) != 1 {
		t.Errorf("ended %v", l.ends)
	}
}

// On a terminal ^C reaches the program once. The window ends, and the exit code is the program's.
func TestMarkRunOnATerminal(t *testing.T) {
	t.Parallel()
	v, l := marked(t, python(t), "-c", counter)
	s := onScreen(t, v)
	s.until(t, 1, "ready")
	s.press(t, "\x03")
	s.until(t, 1, "got SIGINT 1")
	s.press(t, "\n")
	if code := s.end(v); code != 5 || !strings.Contains(s.String(), "counts [('SIGINT', 1)]") || len(l.ends) != 1 {
		t.Errorf("exit code %d, ended %v: %s", code, l.ends, s.String())
	}
}
