// Package fault runs a program of a test again and again: each time, one of the system calls by which it changes files
// fails, or the program is killed at it.
package fault

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// Program is what is tested. It works on its first thread, because only that one is followed: call
// OnFirstThread in an init function. It prints its errors on standard output, one on a line.
type Program struct {
	Folder string           // an absolute path. System calls elsewhere go on as usual
	Start  func() *exec.Cmd // returns the program, with nothing connected
	Reset  func(*testing.T) // puts the files as they are before the program
	State  func() string    // Old, New, or what is wrong with the files
	Warns  bool             // a line may be a warning: the files may be the new ones
	After  func(*testing.T) // what the next program does with the files; it must work
}

// OnFirstThread keeps a copy of the test binary on its first thread if the variable has a value. It is for an init
// function: later, main may be on another thread.
func OnFirstThread(variable string) {
	if os.Getenv(variable) != "" {
		runtime.LockOSThread()
	}
}

// Copy is a copy of the test binary with one more variable. The race detector does not delay its end.
func Copy(variable, value string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), variable+"="+value, "GORACE=atexit_sleep_ms=0")
	return cmd
}

// The two good states of files.
const (
	Old = "old"
	New = "new"
)

// calls are those by which a program changes files. A program that dies just before each of them leaves the files in
// every state that they ever have.
const calls = "openat,write,pwrite64,fsync,fdatasync,ftruncate,renameat,renameat2,rename,linkat,symlinkat,unlink," +
	"unlinkat,mkdir,mkdirat,fchmod,fchmodat,fchown,fchownat,chmod,chown,close"

// attempts bounds how often a fault is tried again that missed the folder: a runtime may make a call of its own before.
const attempts = 5

var failures = map[string]syscall.Errno{"ENOSPC": syscall.ENOSPC, "EIO": syscall.EIO}

// Each kills the program at each of its system calls on the folder, and lets each of them fail on a full disk and on a
// broken one. Killed, it leaves the old or the new files. If a call fails, it prints one line and leaves the old files,
// or prints nothing and leaves the new ones. The next program works. Each skips the test where strace cannot be used.
func Each(t *testing.T, p Program) {
	t.Helper()
	if out, err := exec.Command("strace", "-o", os.DevNull, "true").CombinedOutput(); err != nil {
		t.Skipf("needs strace and the right to use it: %v: %s", err, out)
	}
	p.Reset(t)
	whole := p.run(t, "")
	if got := p.State(); whole.printed != "" || got != New {
		t.Fatalf("without a fault: got %q, files %s", whole.printed, got)
	}
	sites := p.sites(whole.log)
	if len(sites) < 5 {
		t.Fatalf("got %d system calls on %s, want more:\n%s", len(sites), p.Folder, whole.log)
	}
	for _, s := range sites {
		t.Run(fmt.Sprintf("%s-%d/KILL", s.call, s.number), func(t *testing.T) { p.kill(t, s) })
		for name, errno := range failures {
			t.Run(fmt.Sprintf("%s-%d/%s", s.call, s.number, name), func(t *testing.T) { p.fail(t, s, name, errno) })
		}
	}
	t.Logf("%d system calls on %s", len(sites), p.Folder)
}

// site is the number-th system call of its name.
type site struct {
	call   string
	number int
}

func (s site) inject(what string) string {
	return fmt.Sprintf("inject=%s:%s:when=%d", s.call, what, s.number)
}

// sites returns the system calls of a log that concern the folder.
func (p Program) sites(log string) (list []site) {
	numbers := map[string]int{}
	for line := range strings.Lines(log) {
		call, _, found := strings.Cut(line, "(")
		if !found || !slices.Contains(strings.Split(calls, ","), call) {
			continue
		}
		numbers[call]++
		if p.concerned(line) {
			list = append(list, site{call, numbers[call]})
		}
	}
	return list
}

func (p Program) concerned(line string) bool { return strings.Contains(line, p.Folder) }

func (p Program) kill(t *testing.T, s site) {
	r := p.hit(t, s, "signal=KILL")
	if !r.killed {
		t.Fatalf("it was not killed; it printed %q", r.printed)
	}
	if got := p.State(); got != Old && got != New {
		t.Errorf("got files %s, want the old or the new ones", got)
	}
	p.After(t)
}

func (p Program) fail(t *testing.T, s site, name string, errno syscall.Errno) {
	r := p.hit(t, s, "error="+name)
	got := p.State()
	switch lines := strings.Count(r.printed, "\n"); {
	case r.killed:
		t.Errorf("it was killed")
	case lines == 0 && got != New:
		t.Errorf("it printed no error: got files %s, want the new ones", got)
	case lines == 1 && got != Old && (!p.Warns || got != New), lines > 1:
		t.Errorf("it printed %q: got files %s, want one line and the old ones", r.printed, got)
	case s.call == "close": // strace leaves the file open, and a lock on it that is in the way later
	case lines == 1 && !strings.Contains(r.printed, errno.Error()):
		t.Errorf("it printed %q, want %q in it", r.printed, errno.Error())
	}
	p.After(t)
}

// hit runs the program with a fault until the fault is one on the folder.
func (p Program) hit(t *testing.T, s site, what string) result {
	t.Helper()
	for range attempts {
		p.Reset(t)
		if r := p.run(t, s.inject(what)); p.concerned(faulty(r.log)) {
			return r
		}
	}
	t.Fatalf("none of %d runs had the fault at a system call on %s", attempts, p.Folder)
	return result{}
}

// faulty returns the line of a log with the fault: the last one of a killed program, or the one that is marked.
func faulty(log string) (line string) {
	for next := range strings.Lines(log) {
		if strings.Contains(next, "(INJECTED)") {
			return next
		}
		if !strings.HasPrefix(next, "+++") && !strings.HasPrefix(next, "---") {
			line = next
		}
	}
	if !strings.Contains(log, "+++ killed by SIGKILL +++") {
		return ""
	}
	return line
}

// result is what a program did.
type result struct {
	log     string // of strace
	printed string
	killed  bool
}

// run runs the program once under strace, with a fault or "".
func (p Program) run(t *testing.T, fault string) result {
	t.Helper()
	log := filepath.Join(t.TempDir(), "log")
	arguments := []string{"-y", "-o", log, "-e", "trace=" + calls}
	if fault != "" {
		arguments = append(arguments, "-e", fault)
	}
	program := p.Start()
	traced := exec.Command("strace", append(append(arguments, "--"), program.Args...)...)
	var out bytes.Buffer
	traced.Env, traced.Dir, traced.Stdout, traced.Stderr = program.Env, program.Dir, &out, &out
	err := traced.Run()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	status, _ := traced.ProcessState.Sys().(syscall.WaitStatus)
	return result{string(text), out.String(), status.Signaled() && status.Signal() == syscall.SIGKILL}
}
