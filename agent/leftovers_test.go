package agent

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stallspan/stallspan/agent/internal/cli"
	"github.com/stallspan/stallspan/agent/internal/runs"
)

const stillOpen = "stallspan: a process that the program left running still has its output open"

// A process that was left running keeps the output open after the program's exit.
func TestProcessLeftBehind(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"silent":      "sleep 60 & echo $!; echo the end",
		"a daemon":    "setsid sleep 60 & echo $!; echo the end",
		"still there": "(sleep 0.3; echo more; exec sleep 60) & echo $!; echo the end",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, terminal := range []bool{false, true} {
				pidFile := filepath.Join(t.TempDir(), "pid")
				v := stallspan(t, "run", "--", "sh", "-c", strings.Replace(script, "echo $!", "echo $! > "+pidFile, 1))
				// The process also keeps the cgroup until it exits.
				t.Cleanup(func() { endOf(t, v, pidFile) })
				began := time.Now()
				text := ""
				if terminal {
					s := onScreen(t, v)
					if err := v.Wait(); err != nil {
						t.Error(err)
					}
					s.until(t, 1, stillOpen)
					text = s.String()
				} else {
					v.start()
					if err := v.Wait(); err != nil {
						t.Error(err)
					}
					text = v.out.String() + v.err.String()
				}
				if took := time.Since(began); took > slowest/3 {
					t.Errorf("terminal %v: waited for %v", terminal, took)
				}
				if !strings.Contains(text, "the end") || !strings.Contains(text, stillOpen) {
					t.Errorf("terminal %v: %q", terminal, text)
				}
				if name == "still there" && !strings.Contains(text, "more") {
					t.Errorf("terminal %v: the last words are missing: %q", terminal, text)
				}
			}
		})
	}
}

// endOf kills the process with the id in a file, and removes the cgroup that it kept.
func endOf(t *testing.T, v *invocation, pidFile string) {
	t.Helper()
	group := v.cgroup()
	text, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := exec.Command("kill", "-9", strings.TrimSpace(string(text))).Run(); err != nil {
		t.Log(err) // its terminal has ended it
	}
	for end := time.Now().Add(slowest / 6); group != "" && os.Remove(group) != nil; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Errorf("%s cannot be removed", group)
			break
		}
	}
}

// A process that prints for ever is not waited for.
func TestProcessLeftBehindThatPrints(t *testing.T) {
	t.Parallel()
	pidFile := filepath.Join(t.TempDir(), "pid")
	v := stallspan(t, "run", "--", "sh", "-c", "(while echo more; do sleep 0.2; done) & echo $! > "+pidFile)
	v.start()
	if err := v.Wait(); err != nil || !strings.Contains(v.err.String(), stillOpen) {
		t.Errorf("%v: got %s, want the warning about the open output", err, v.err.String())
	}
	if lines := strings.Count(v.out.String(), "more\n"); lines < 5 {
		t.Errorf("%d lines of it", lines)
	}
	endOf(t, v, pidFile)
}

// This runs in our own process, where TestMain finds leaked goroutines.
func TestNoGoroutineIsLeft(t *testing.T) {
	for _, pair := range os.Environ() {
		if name, _, _ := strings.Cut(pair, "="); strings.HasPrefix(name, "OTEL_") {
			t.Setenv(name, "")
		}
	}
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+serveBackend(t).address)
	log, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	stderr := os.Stderr
	os.Stderr = log
	defer func() { os.Stderr = stderr; _ = log.Close() }()
	for want, command := range []string{"echo Epoch 1/1 >&2", "exit 1"} {
		if code := Main([]string{"run", "--", "sh", "-c", command}); code != want {
			t.Errorf("%s: exit code %d", command, code)
		}
	}
	if code := Main([]string{"run", "--", "stallspan-no-such-program"}); code != cli.ExitNotFound {
		t.Errorf("exit code %d", code)
	}
}

func TestOwnCgroup(t *testing.T) {
	v := stallspan(t, "run", "--", "cat", "/proc/self/cgroup")
	if code := v.run(); code != 0 { // it finds what is left behind
		t.Errorf("exit code %d", code)
	}
	if !strings.Contains(v.out.String(), "/stallspan-run-") {
		g := runs.NewCgroup()
		if g != nil {
			runs.RemoveCgroup(g)
			t.Fatalf("the program ran in %s", v.out.String())
		}
		t.Skip("needs a cgroup v2 in which others may be made: root, or one that was delegated")
	}
}

// A process that exits shortly after the program does not leave the cgroup behind.
func TestProcessThatEndsLater(t *testing.T) {
	v := stallspan(t, "run", "--", "sh", "-c", "sleep 0.02 >/dev/null 2>&1 &")
	if code := v.run(); code != 0 || strings.Contains(v.err.String(), stillOpen) {
		t.Errorf("exit code %d: %s", code, v.err.String())
	}
}

// Without privileges there is no cgroup, and everything else works.
func TestWithoutRights(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to give up what it may do; as another user every test here runs without")
	}
	copied := filepath.Join(t.TempDir(), "stallspan")
	if err := exec.Command("cp", os.Args[0], copied).Run(); err != nil {
		t.Fatal(err)
	}
	for dir := copied; len(dir) > len(os.TempDir()); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	v := stallspan(t, "run", "--report", "/dev/stdout", "--", "sh", "-c",
		"echo Epoch 1/1 >&2; cat /proc/self/cgroup >&2; sleep 0.3; x=0; while [ $x -lt 500000 ]; do x=$((x+1)); done")
	v.Path, v.Dir = copied, "/"
	v.SysProcAttr.Credential = &syscall.Credential{Uid: 65534, Gid: 65534}
	if err := os.Chmod(v.temp, 0o777); err != nil {
		t.Fatal(err)
	}
	if code := v.run(); code != 0 || strings.Contains(v.err.String(), "stallspan-run-") {
		t.Fatalf("exit code %d: %s", code, v.err.String())
	}
	d := parseReport(t, v.out.Bytes())
	if w := d.Windows[0]; w.label() != "epoch 1" || w.Process == nil || w.Process.OnCPU <= 0 {
		t.Errorf("got %s%s, want epoch 1 with its CPU time", v.err.String(), v.out.String())
	}
}

// A run that was killed leaves its cgroup and the folder of its socket. A later one removes them, and not those of runs
// that go on.
func TestSweep(t *testing.T) {
	killed := stallspan(t, "run", "--", "sh", "-c", "sleep 60 & echo $! ; wait")
	live := stallspan(t, "run", "--", "sleep", "60")
	live.temp = killed.temp
	live.Env = append(live.Env, "TMPDIR="+killed.temp)
	var out liveOutput
	killed.Stdout = &out
	killed.start()
	live.start()
	defer func() { _ = live.Process.Signal(syscall.SIGTERM); _ = live.Wait() }()
	out.until(t, 1, "\n")
	folders := func() []string {
		found, _ := filepath.Glob(filepath.Join(killed.temp, runs.Prefix+"*"))
		return found
	}
	for end := time.Now().Add(slowest / 6); len(folders()) < 2 && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
	if len(folders()) != 2 {
		t.Fatalf("got %v, want the folders of two runs", folders())
	}
	group := killed.cgroup()
	_ = killed.Process.Kill()
	_ = killed.Wait()
	_ = exec.Command("kill", strings.TrimSpace(out.String())).Run()
	t.Setenv("TMPDIR", killed.temp)
	if runs.Sweep(time.Hour); len(folders()) != 2 {
		t.Errorf("younger than an hour: got %v, want both", folders())
	}
	for end := time.Now().Add(slowest / 6); ; time.Sleep(5 * time.Millisecond) { // until the processes have ended
		runs.Sweep(0)
		_, err := os.Stat(group)
		if len(folders()) == 1 && (group == "" || err != nil) {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("got %v and the cgroup %s, want those of the live run alone", folders(), group)
		}
	}
}

// A process that was left running goes on when it prints after our end. A file gets what it prints.
func TestProcessLeftBehindOutlivesUs(t *testing.T) {
	for _, toFile := range []bool{false, true} {
		folder := t.TempDir()
		alive, log := filepath.Join(folder, "alive"), filepath.Join(folder, "log")
		v := stallspan(t, "run", "--", "sh", "-c", "(sleep 2.5; echo late; echo late; echo $? > "+alive+".new; mv "+
			alive+".new "+alive+") & echo the end")
		if toFile {
			file, err := os.Create(log)
			if err != nil {
				t.Fatal(err)
			}
			v.Stdout = file
			defer func() { _ = file.Close() }()
		}
		v.start()
		if err := v.Wait(); err != nil || !strings.Contains(v.err.String(), stillOpen) {
			t.Fatalf("got %v, %s; want that a process is left", err, &v.err)
		}
		for end := time.Now().Add(slowest / 2); ; time.Sleep(10 * time.Millisecond) {
			if text, err := os.ReadFile(alive); err == nil {
				if got := string(text); got != "0\n" {
					t.Errorf("to a file %v: got %q from its print, want 0", toFile, got)
				}
				break
			}
			if time.Now().After(end) {
				t.Fatalf("to a file %v: got no sign of the process, want that it goes on", toFile)
			}
		}
		if group := v.cgroup(); group != "" {
			for end := time.Now().Add(slowest / 6); os.Remove(group) != nil && time.Now().Before(end); {
				time.Sleep(5 * time.Millisecond)
			}
		}
		if !toFile {
			continue
		}
		for end := time.Now().Add(slowest / 6); ; time.Sleep(5 * time.Millisecond) {
			text, err := os.ReadFile(log)
			if string(text) == "the end\nlate\nlate\n" {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("got %q, %v; want all lines", text, err)
			}
		}
	}
}
