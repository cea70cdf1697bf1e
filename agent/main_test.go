package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/stallspan/stallspan/agent/internal/cli"
	"github.com/stallspan/stallspan/agent/internal/mark"
	"github.com/stallspan/stallspan/agent/internal/reports"
	"github.com/stallspan/stallspan/internal/monitor/follow"
)

// actAs makes a copy of the test binary act as stallspan, or as a program that announces windows.
const actAs = "STALLSPAN_TEST_ACT_AS"

// patient is the role of a stallspan that waits for an agent for as long as a busy machine may take.
const patient = "patient stallspan"

func TestMain(m *testing.M) {
	role := os.Getenv(actAs)
	_ = os.Unsetenv(actAs) // a wrapped copy gets the environment of a user
	switch role {
	case "stallspan with rights": // which it gives up by starting itself again
		_ = os.Setenv(actAs, "stallspan")
		os.Exit(Main(os.Args[1:]))
	case patient:
		mark.Timeout = slowest
		os.Exit(Main(os.Args[1:]))
	case "stallspan":
		os.Exit(Main(os.Args[1:]))
	case "report":
		reportOnce(os.Args[1])
		os.Exit(0)
	case "announcer":
		os.Exit(announce())
	}
	goleak.VerifyTestMain(m)
}

// slowest is the timeout of a test: far more than any needs on a busy machine.
const slowest = 2 * time.Minute

// invocation is one call of stallspan as a user makes it: a process of its own, with a folder for temporary files of
// its own, and nothing in its environment that changes it.
type invocation struct {
	*exec.Cmd
	t        *testing.T
	out, err bytes.Buffer
	temp     string
	groups   []string // the cgroups of other calls that were there before, perhaps of one with the same process id
}

func stallspan(t *testing.T, args ...string) *invocation {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), slowest)
	t.Cleanup(cancel)
	temp, err := os.MkdirTemp("", "st") // short: a socket's path has 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(temp) })
	v := &invocation{Cmd: exec.CommandContext(ctx, os.Args[0], args...), t: t, temp: temp, groups: cgroupsOfRuns("*")}
	for _, pair := range os.Environ() {
		switch name, _, _ := strings.Cut(pair, "="); {
		case strings.HasPrefix(name, "OTEL_"), strings.HasPrefix(name, "STALLSPAN_"):
		case name == "TRACEPARENT", name == "PYTHONUNBUFFERED", name == "TMPDIR", name == "GOCOVERDIR":
		default:
			v.Env = append(v.Env, pair)
		}
	}
	v.Env = append(v.Env, actAs+"=stallspan", "TMPDIR="+temp, "XDG_STATE_HOME="+temp, "GOCOVERDIR="+t.TempDir(),
		"GORACE=atexit_sleep_ms=0") // the race detector sleeps for a second at every exit
	v.Stdout, v.Stderr = &v.out, &v.err
	v.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // not on the terminal that the tests may run on
	v.WaitDelay = 5 * time.Second
	return v
}

// run calls stallspan and returns its exit code.
func (v *invocation) run() int {
	v.t.Helper()
	v.start()
	return v.wait()
}

func (v *invocation) start() {
	v.t.Helper()
	if err := v.Start(); err != nil {
		v.t.Fatal(err)
	}
}

// wait returns the exit code, or 128 + n if signal n ended stallspan itself, and reports leftovers.
func (v *invocation) wait() int {
	v.t.Helper()
	err := v.Wait()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		v.t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(v.temp, "stallspan-*"))
	if err != nil {
		v.t.Fatal(err)
	}
	for _, path := range left {
		if !strings.HasPrefix(filepath.Base(path), "stallspan-report-") { // a report that could not be written to its file
			v.t.Errorf("left behind: %s", path)
		}
	}
	if group := v.cgroup(); group != "" {
		v.t.Errorf("left behind: %s", group)
	}
	if status, ok := v.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		v.t.Errorf("stallspan was ended by %v", status.Signal())
		return cli.ExitSignalBase + int(status.Signal())
	}
	return v.ProcessState.ExitCode()
}

// cgroup is the folder of the cgroup that this call of stallspan made and did not remove, or empty.
func (v *invocation) cgroup() string {
	for _, group := range cgroupsOfRuns(fmt.Sprintf("%d-*", v.Process.Pid)) {
		if !slices.Contains(v.groups, group) {
			return group
		}
	}
	return ""
}

// cgroupsOfRuns finds the folders of cgroups that `stallspan run` has made below ours, by what follows their common name.
func cgroupsOfRuns(pattern string) []string {
	_, own, err := follow.OwnCgroup()
	if err != nil {
		return nil
	}
	found, err := filepath.Glob(filepath.Join(own, "stallspan-run-"+pattern))
	if err != nil {
		return nil
	}
	return found
}

// errorLine is the single line of stallspan itself on standard error.
func (v *invocation) errorLine() string {
	v.t.Helper()
	text := v.err.String()
	line, rest, ended := strings.Cut(text, "\n")
	if !ended || rest != "" || !strings.HasPrefix(line, "stallspan: ") {
		v.t.Errorf("not one line: %q", text)
	}
	return line
}

// python is the interpreter itself, as python3 may be a script that finds it.
func python(t *testing.T) string {
	t.Helper()
	path, err := findPython()
	if err != nil {
		t.Skipf("needs python3: %v", err)
	}
	return path
}

var findPython = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output()
	return strings.TrimSpace(string(out)), err
})

// liveOutput collects a program's output while it runs.
type liveOutput struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (f *liveOutput) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.text.Write(p)
}

func (f *liveOutput) String() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.text.String()
}

// until returns when the program has printed want, n times.
func (f *liveOutput) until(t *testing.T, n int, want string) {
	t.Helper()
	for end := time.Now().Add(slowest / 2); strings.Count(f.String(), want) < n; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%q was not printed %d times: %q", want, n, f.String())
		}
	}
}

// reportOnce writes a report as `run --report` does.
func reportOnce(path string) {
	file, err := reports.OpenReport(path)
	if err == nil {
		err = file.Save(reports.Document{Problems: []string{"a new report"}})
	}
	if err != nil {
		fmt.Println(err)
	}
}
