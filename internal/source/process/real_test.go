package process

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// shell is a real process that runs commands step by step.
type shell struct {
	testing.TB
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startShell(t testing.TB, attr *syscall.SysProcAttr) *shell {
	t.Helper()
	path, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("needs a shell")
	}
	if !exists("/proc/self/io") {
		t.Skip("needs /proc/PID/io")
	}
	s := &shell{TB: t, Cmd: exec.Command(path)}
	attr.Setpgid = true
	s.SysProcAttr = attr
	s.Stderr = os.Stderr
	if s.in, err = s.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := s.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.out = bufio.NewReader(out)
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.leaveNothing)
	return s
}

// do waits until the shell has done its line, and gives what it printed first.
func (s *shell) do(line string) string {
	s.Helper()
	if _, err := fmt.Fprintf(s.in, "%s\necho end of line\n", line); err != nil {
		s.Fatal(err)
	}
	first := ""
	for {
		text, err := s.out.ReadString('\n')
		if err != nil {
			s.Fatal(err)
		}
		if text == "end of line\n" {
			return first
		}
		if first == "" {
			first = strings.TrimSpace(text)
		}
	}
}

func (s *shell) exit() {
	_ = s.in.Close()
	_ = s.Wait()
}

// leaveNothing ends what the shell has started and left behind.
func (s *shell) leaveNothing() {
	s.exit()
	_ = syscall.Kill(-s.Process.Pid, syscall.SIGKILL)
}

// fifo is what a background process waits at until open is called.
func fifo(t testing.TB, name string) (path string, open func()) {
	t.Helper()
	path = filepath.Join(t.TempDir(), name)
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skipf("needs named pipes: %v", err)
	}
	return path, func() {
		if err := os.WriteFile(path, []byte("\n"), 0); err != nil {
			t.Fatal(err)
		}
	}
}

// job takes a reading after a look for new members.
func lookedAt(t testing.TB, s *Source) sample.Job {
	t.Helper()
	s.lookNow()
	return read(t, s).Jobs[0]
}

const megabyte = 1 << 20

func between(t testing.TB, what string, got, low, high uint64) {
	t.Helper()
	if got < low || got > high {
		t.Errorf("%s: %d, want %d to %d", what, got, low, high)
	}
}

// Children that read and end, seen or not, are counted once, although the kernel adds what they read to their
// parent's counters too.
func TestRealChildren(t *testing.T) {
	big := filepath.Join(t.TempDir(), "big")
	if err := os.WriteFile(big, make([]byte, 8*megabyte), 0o600); err != nil {
		t.Fatal(err)
	}
	shell := startShell(t, &syscall.SysProcAttr{})
	shell.do("cat " + big + " >/dev/null") // before the job is followed: it does not count
	source := New("")
	defer source.Close()
	if err := source.Add("sh", shell.Process.Pid, Options{}); err != nil {
		t.Fatal(err)
	}
	between(t, "at first", read(t, source).Jobs[0].ReadChars, 0, megabyte)

	shell.do("cat " + big + " >/dev/null") // unseen
	between(t, "after a child without a reading", read(t, source).Jobs[0].ReadChars, 8*megabyte, 9*megabyte)

	wait, goOn := fifo(t, "wait")
	ready, readyToGo := fifo(t, "ready")
	shell.do(fmt.Sprintf("(cat %s >/dev/null; read x <%s; read y <%s) &", big, ready, wait))
	readyToGo() // it has read by now
	job := lookedAt(t, source)
	between(t, "while a child lives", job.ReadChars, 16*megabyte, 17*megabyte)
	between(t, "processes", uint64(job.Processes), 2, 2)
	goOn()
	shell.do("wait")
	for range 3 {
		job = read(t, source).Jobs[0]
		between(t, "after its end", job.ReadChars, 16*megabyte, 17*megabyte)
	}
	between(t, "processes", uint64(job.Processes), 1, 1)

	// An orphan stays a member, wherever it hangs now.
	middle, endMiddle := fifo(t, "middle")
	begin, orphanBegins := fifo(t, "begin")
	done, orphanIsDone := fifo(t, "done")
	orphan, endOrphan := fifo(t, "orphan")
	shell.do(
		fmt.Sprintf("sh -c '(read x <%s; cat %s >/dev/null; read x <%s; read x <%s) & read z <%s' >/dev/null &", begin, big,
			done, orphan, middle),
	)
	job = lookedAt(t, source)
	for job.Processes < 3 { // until both have been born
		job = lookedAt(t, source)
	}
	endMiddle()
	shell.do("wait")
	orphanBegins()
	orphanIsDone()
	job = read(t, source).Jobs[0]
	between(t, "with the orphan's", job.ReadChars, 24*megabyte, 25*megabyte)
	between(t, "processes", uint64(job.Processes), 2, 2)
	endOrphan()

	shell.do("i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done")
	before := read(t, source).Jobs[0]
	shell.exit()
	for job.Processes > 0 {
		job = read(t, source).Jobs[0]
	}
	if job.ReadChars < before.ReadChars || job.CPUTime < before.CPUTime || job.WriteBytes < before.WriteBytes {
		t.Errorf("at the end %+v, before %+v", job, before)
	}
	between(t, "at the end", job.ReadChars, 24*megabyte, 25*megabyte)
	spent := shell.ProcessState.UserTime() + shell.ProcessState.SystemTime()
	if job.CPUTime <= 0 || job.CPUTime > spent+time.Second { // spent is without the orphan's, which has read 8 MiB
		t.Errorf("CPU time %v, the shell spent %v", job.CPUTime, spent)
	}
}

// A program's name may look like the rest of the line.
func TestRealAwkwardName(t *testing.T) {
	cat, err := exec.LookPath("cat")
	if err != nil {
		t.Skip("needs cat")
	}
	program, err := os.ReadFile(cat)
	if err != nil {
		t.Skip(err)
	}
	path := filepath.Join(t.TempDir(), ") Z 1 (x) 2")
	if err := os.WriteFile(path, program, 0o700); err != nil {
		t.Fatal(err)
	}
	child := exec.Command(path)
	child.Args[0] = "cat" // where it is one program of many
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Skip(err)
	}
	defer func() { _ = in.Close(); _ = child.Wait() }()
	source := New("")
	defer source.Close()
	if err := source.Add("cat", child.Process.Pid, Options{}); err != nil {
		t.Fatal(err)
	}
	if got := read(t, source); got.Jobs[0].Processes != 1 || !got.Jobs[0].HasIO {
		t.Errorf("got %+v", got)
	}
}

// For a process of another user the CPU time is known, the bytes are not, and the error has the reason.
func TestRealForbidden(t *testing.T) {
	if os.Getuid() == 0 { // run again as another user
		again := exec.Command("/proc/self/exe", "-test.run=^TestRealForbidden$", "-test.v")
		again.Dir = "/"
		again.Env = append(os.Environ(), "TMPDIR=/tmp", "GOCOVERDIR=")
		again.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		out, err := again.CombinedOutput()
		switch {
		case len(out) == 0:
			t.Skipf("cannot run as nobody: %v", err)
		case err != nil:
			t.Errorf("as nobody: %v\n%s", err, out)
		case strings.Contains(string(out), "SKIP"):
			t.Skipf("%s", out)
		}
		return
	}
	pid := os.Getppid()
	if _, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid)); err == nil {
		t.Skip("needs a parent that belongs to another user: run as root")
	}
	source := New("")
	defer source.Close()
	if err := source.Add("parent", pid, Options{}); err != nil {
		t.Fatal(err)
	}
	for first := range 2 {
		var got sample.Sample
		err := source.Read(&got)
		want := "the bytes that some processes read are not known"
		if first == 0 &&
			(err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "CAP_SYS_PTRACE")) {
			t.Errorf("got error %v, want %q and the capabilities", err, want)
		}
		if first == 1 && err != nil && strings.Contains(err.Error(), want) {
			t.Errorf("second reading: got error %v, want none", err)
		}
		if len(got.Jobs) != 1 || got.Jobs[0].HasIO || got.Jobs[0].Processes < 2 {
			t.Errorf("got jobs %+v, want one without bytes", got.Jobs)
		}
		for _, p := range got.Processes {
			if p.HasIO != (p.PID == os.Getpid()) {
				t.Errorf("process %+v", p)
			}
		}
		source.lookNow()
	}
}
