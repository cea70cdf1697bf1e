package agent

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/test/fixture"
)

// cutShort runs a Python program that does not succeed, and returns its report and what was printed.
func cutShort(t *testing.T, program string) (*reportDocument, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "report.json")
	v := stallspan(t, "run", "--report", path, "--", python(t), "-c", "import os, signal, sys, time\n"+program)
	if code := v.run(); code == 0 {
		t.Errorf("got exit code 0, want that of a program that fails: %s", v.err.String())
	}
	return readReport(t, path), v.err.String()
}

// TestEndsOfWindows: an epoch or load that its program did not end has its window, with how the program ended.
func TestEndsOfWindows(t *testing.T) {
	t.Parallel()
	const epoch = "print('Epoch 1/3', flush=True); time.sleep(0.5)\nprint('Epoch 2/3', flush=True); time.sleep(0.5)\n"
	const load = "print('Loading weights [d7049739] from llama-3', flush=True)\ntime.sleep(0.5)\n"
	const bus = `
import mmap, tempfile
with tempfile.TemporaryFile() as f:
    f.truncate(1 << 16)
    m = mmap.mmap(f.fileno(), 1 << 16, prot=mmap.PROT_READ)
    f.truncate(0)
    m[0]
`
	for _, test := range []struct {
		name, program, label, ended string
		failed                      bool
	}{
		{"an epoch that raises", epoch + "raise ValueError", "epoch 2", "exit code 1", true},
		{"an epoch that is killed", epoch + "os.kill(os.getpid(), signal.SIGKILL)", "epoch 2", "SIGKILL", true},
		{"an epoch that a scheduler ends", epoch + "os.kill(os.getpid(), signal.SIGTERM)", "epoch 2", "SIGTERM", false},
		{"an epoch that ^C ends", epoch + "signal.raise_signal(signal.SIGINT)", "epoch 2", "SIGINT (^C)", false},
		{"a load that raises", load + "raise OSError", "model_load llama-3", "exit code 1", true},
		{"a load whose file goes away", load + bus, "model_load llama-3",
			"SIGBUS: it read a mapped file that could not be read, or that is shorter now", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			d, said := cutShort(t, test.program)
			if len(d.Windows) == 0 {
				t.Fatalf("got no windows: %s", said)
			}
			w := &d.Windows[len(d.Windows)-1]
			if w.label() != test.label || !w.Unfinished || w.Ended != test.ended || w.Failed != test.failed {
				t.Errorf("got %s, unfinished %v, ended %q, failed %v, want %s, ended %q, failed %v", w.label(), w.Unfinished,
					w.Ended, w.Failed, test.label, test.ended, test.failed)
			}
			if !strings.Contains(w.Finding, test.ended+".") {
				t.Errorf("got the finding %q, want %q in it", w.Finding, test.ended)
			}
			if test.label != "epoch 2" && w.Remedy != "" {
				t.Errorf("got the remedy %q of a load that failed, want none", w.Remedy)
			}
		})
	}
}

// TestFailsBeforeItsFirstEpoch: a program that failed has that sentence and no advice.
func TestFailsBeforeItsFirstEpoch(t *testing.T) {
	t.Parallel()
	d, said := cutShort(t, "print('one line')\ntime.sleep(0.5)\nimport no_such_module_as_this")
	for _, text := range []string{"Try:", "No epochs:", "on the CPU"} {
		if strings.Contains(said, text) {
			t.Errorf("got %q, want no %q in it", said, text)
		}
	}
	if want := "exit code 1."; !strings.Contains(said, "It failed after ") || !strings.Contains(said, want) {
		t.Errorf("got %q, want that it failed with %s", said, want)
	}
	if w := &d.Windows[0]; len(d.Windows) != 1 || w.Remedy != "" || !w.Failed {
		t.Errorf("got %+v, want the failed program alone", d.Windows)
	}
}

// TestStoppedByHand: a program that ends by its user's signal has failed at nothing. Its epoch is cut, whatever its
// exit code is, and the table keeps the advice.
func TestStoppedByHand(t *testing.T) {
	t.Parallel()
	for code, ended := range map[int]string{
		0: "SIGINT (^C), then exit code 0", 4: "SIGINT (^C), then exit code 4",
	} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "report.json")
			v := stallspan(t, "run", "--report", path, "--", python(t), "-c", `
import sys, time
print("Epoch 1/3", flush=True)
time.sleep(0.5)
print("Epoch 2/3", flush=True)
try:
    print("ready", flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    sys.exit(int(sys.argv[1]))
`, fmt.Sprint(code))
			var said liveOutput
			v.Stdout = &said
			v.start()
			said.until(t, 1, "ready")
			if err := v.Process.Signal(unix.SIGINT); err != nil {
				t.Fatal(err)
			}
			if got := v.wait(); got != code {
				t.Errorf("got exit code %d, want %d: %s", got, code, v.err.String())
			}
			d := readReport(t, path)
			if len(d.Windows) != 2 {
				t.Fatalf("got %d windows, want two: %s", len(d.Windows), v.err.String())
			}
			if w := &d.Windows[0]; w.Unfinished {
				t.Errorf("the first epoch: got unfinished (%s), want an end of its own", w.Ended)
			}
			if w := &d.Windows[1]; !w.Unfinished || w.Ended != ended || w.Failed {
				t.Errorf("got unfinished %v, ended %q, failed %v, want it cut: %s", w.Unfinished, w.Ended, w.Failed, ended)
			}
		})
	}
}

// TestOutOfMemory: a program that the kernel kills has the cgroup whose limit was the reason.
func TestOutOfMemory(t *testing.T) {
	t.Parallel()
	group := fixture.MemoryCgroup(t, 256<<20)
	path := filepath.Join(t.TempDir(), "report.json")
	v := stallspan(t, "run", "--report", path, "--", python(t), "-c",
		`print("Epoch 1/1", flush=True); b = b"x" * (1 << 30)`)
	v.Args = append([]string{"sh", "-c", "echo $$ >" + group + `/cgroup.procs && exec "$0" "$@"`}, v.Args...)
	v.Path = "/bin/sh"
	if code := v.run(); code != 137 {
		t.Fatalf("got exit code %d, want 137: %s", code, v.err.String())
	}
	w := readReport(t, path).Windows[0]
	want := "SIGKILL: out of memory, by the limit of the cgroup /" + filepath.Base(group)
	if w.Ended != want || !w.Failed {
		t.Errorf("got ended %q, failed %v, want %s", w.Ended, w.Failed, want)
	}
}
