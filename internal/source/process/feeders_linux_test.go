package process

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// line runs a line of a shell in a session of its own, until the test ends. The programs of the line write their
// process IDs to files: see pid.
type line struct {
	testing.TB
	cmd    *exec.Cmd
	folder string
}

func startLine(t testing.TB, script string, attr syscall.SysProcAttr) *line {
	t.Helper()
	for _, tool := range []string{"bash", "tar", "head", "sleep"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("needs %s", tool)
		}
	}
	folder, err := os.MkdirTemp("", "feeders")
	if err == nil {
		err = os.Chmod(folder, 0o777) // another user may write there
	}
	if err != nil {
		t.Fatal(err)
	}
	// is starts a program and keeps its process ID: "is train sleep 60" becomes sleep.
	const is = `is() { echo $BASHPID >"$D/$1.part"; mv "$D/$1.part" "$D/$1"; shift; exec "$@"; }` + "\n"
	l := &line{t, exec.Command("bash", "-c", is+script), folder}
	attr.Setsid = true
	l.cmd.SysProcAttr, l.cmd.Env, l.cmd.Stderr = &attr, append(os.Environ(), "D="+folder), os.Stderr
	if err := l.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = os.RemoveAll(folder)
		l.killSession()
		_ = l.cmd.Wait()
	})
	return l
}

// killSession ends what the line has started, also in other process groups.
func (l *line) killSession() {
	names, _ := os.ReadDir("/proc")
	for _, name := range names {
		pid, err := strconv.Atoi(name.Name())
		if err != nil {
			continue
		}
		if now, ok := StatOf("", pid); ok && now.session == uint64(l.cmd.Process.Pid) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// end kills a program.
func (l *line) end(name string) {
	l.Helper()
	if err := syscall.Kill(l.pid(name), syscall.SIGKILL); err != nil {
		l.Fatal(err)
	}
}

// patiently waits until something holds.
func (l *line) patiently(holds func() bool) {
	l.Helper()
	for end := time.Now().Add(10 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			l.Fatal("it does not hold")
		}
	}
}

func nameOf(pid int) string {
	name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	return strings.TrimSpace(string(name))
}

// pid waits for a program of the line.
func (l *line) pid(name string) int {
	l.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		text, err := os.ReadFile(filepath.Join(l.folder, name))
		if err != nil {
			continue
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			l.Fatal(err)
		}
		if nameOf(pid) != "bash" || strings.HasPrefix(name, "shell") { // else it is not the program yet
			return pid
		}
	}
	l.Fatalf("%s did not start", name)
	return 0
}

// follow makes a process of the line a job.
func (l *line) follow(pid int) *Source {
	l.Helper()
	s := New("/")
	l.Cleanup(s.Close)
	if err := s.Add("train", pid, Options{}); err != nil {
		l.Fatal(err)
	}
	return s
}

// wantFeeders waits until the feeders of a job are some programs.
func (l *line) wantFeeders(s *Source, names ...string) *sample.Sample {
	l.Helper()
	var want, got []int
	for _, name := range names {
		want = append(want, l.pid(name))
	}
	slices.Sort(want)
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		list, all := feederList(l, s)
		got = got[:0]
		for _, p := range list {
			got = append(got, p.PID)
		}
		slices.Sort(got)
		if slices.Equal(got, want) {
			return all
		}
		if time.Now().After(end) {
			l.Fatalf("got the feeders %v, want %v: %v; %+v", got, want, names, list)
		}
	}
}

// wantNone waits until a job has no feeder, and then has it search again.
func wantNone(t testing.TB, s *Source) {
	t.Helper()
	var got []sample.Process
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if got, _ = feederList(t, s); len(got) == 0 {
			break
		}
	}
	for range 3 {
		if len(got) > 0 {
			t.Fatalf("got the feeders %+v, want none", got)
		}
		time.Sleep(10 * time.Millisecond)
		got, _ = feederList(t, s)
	}
}

// endless is an archive that takes long: its reader is slow.
const endless = `tar -cf - --ignore-failed-read /usr/share 2>/dev/null`

func TestFeeders(t *testing.T) {
	l := startLine(t, `is tar `+endless+` | is train sleep 60 & is other sleep 60 & wait`, syscall.SysProcAttr{})
	train := l.pid("train")
	l.pid("other")
	s := l.follow(train)
	all := l.wantFeeders(s, "tar")
	if j := all.Jobs[0]; j.Processes != 2 || !slices.Equal(j.LeaderPIDs, []int{train}) {
		t.Errorf("got %+v, want two processes, and that the one of the job leads", j)
	}
	l.end("tar")
	wantNone(t, s)
	if j := read(t, s).Jobs[0]; j.Processes != 1 {
		t.Errorf("got %+v, want one process", j)
	}
}

// A job ends without its feeder.
func TestFeederOutlivesJob(t *testing.T) {
	l := startLine(t, `is feeder sleep 60 | is train sleep 60 & wait`, syscall.SysProcAttr{})
	s := l.follow(l.pid("train"))
	l.wantFeeders(s, "feeder")
	l.end("train")
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		s.lookNow()
		all := read(t, s)
		if all.Jobs[0].Processes == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("got %+v, want no process", all.Processes)
		}
	}
	l.patiently(func() bool {
		s.lookNow()
		return len(read(t, s).Processes) == 0 && len(s.procs) == 0
	})
}

func TestFeedersOfFeeders(t *testing.T) {
	l := startLine(t, `is tar `+endless+` | is head head -c 1G | is cat cat | is train sleep 60; true`, syscall.SysProcAttr{})
	l.wantFeeders(l.follow(l.pid("train")), "tar", "head", "cat")
}

// Each of several programs in turn writes to the pipe. The shell that starts them in a loop does nothing else.
func TestFeederIsReplaced(t *testing.T) {
	l := startLine(t, `(echo $BASHPID >"$D/shell"; for i in 1 2; do (is tar$i sleep 60); done) | is train sleep 60; true`,
		syscall.SysProcAttr{})
	s := l.follow(l.pid("train"))
	l.wantFeeders(s, "tar1", "shell")
	l.end("tar1")
	l.wantFeeders(s, "tar2", "shell")
}

// What a feeder starts belongs to it, although it has no end of the pipe.
func TestChildrenOfFeeder(t *testing.T) {
	l := startLine(t, `(echo $BASHPID >"$D/shell"; (is child sleep 60) >/dev/null; sleep 60) | is train sleep 60; true`,
		syscall.SysProcAttr{})
	l.wantFeeders(l.follow(l.pid("train")), "child", "shell")
}

func TestTwoJobsWithOneFeeder(t *testing.T) {
	l := startLine(t, `exec 5> >(is one sleep 60); is tar `+endless+` 5>&- | is tee tee /dev/fd/5 | is train sleep 60 5>&- & wait`,
		syscall.SysProcAttr{})
	s := l.follow(l.pid("train"))
	l.wantFeeders(s, "tar", "tee")
	if err := s.Add("one", l.pid("one"), Options{}); err != nil {
		t.Fatal(err)
	}
	slices.Reverse(s.jobs)
	l.wantFeeders(s, "tar", "tee")
	s.Remove("train")
	l.wantFeeders(s, "tar", "tee")
}

// Here the shell makes one job a child of tee, which feeds the other. Its work is not for the other.
func TestJobBelowFeeder(t *testing.T) {
	l := startLine(t, `is tar `+endless+` | is tee tee >(is one sleep 60) | is train sleep 60; true`, syscall.SysProcAttr{})
	s := l.follow(l.pid("train"))
	l.wantFeeders(s, "tar", "tee", "one")
	if err := s.Add("one", l.pid("one"), Options{}); err != nil {
		t.Fatal(err)
	}
	l.wantFeeders(s, "tar", "tee")
	slices.Reverse(s.jobs)
	wantNone(t, s) // tee is above it
}

// A job feeds another one. Each has its own ledger.
func TestJobFeedsAnother(t *testing.T) {
	l := startLine(t, `is tar `+endless+` | is decode sleep 60 | is train sleep 60; true`, syscall.SysProcAttr{})
	s := l.follow(l.pid("train"))
	l.wantFeeders(s, "tar", "decode")
	if err := s.Add("decode", l.pid("decode"), Options{}); err != nil {
		t.Fatal(err)
	}
	wantNone(t, s)
	slices.Reverse(s.jobs)
	l.wantFeeders(s, "tar")
	// A job that has all of them takes no feeder from the one in it.
	s.Remove("decode")
	if err := s.Add("line", l.cmd.Process.Pid, Options{}); err != nil {
		t.Fatal(err)
	}
	l.wantFeeders(s, "tar", "decode")
	slices.Reverse(s.jobs)
	wantNone(t, s)
}

// The shell keeps the writing end, which it gives to tar. It has other children.
func TestShellAboveIsNoFeeder(t *testing.T) {
	l := startLine(t, `echo $BASHPID >"$D/shell"; exec 5> >(exec 5>&-; is train sleep 60); is other sleep 60 5>&- & is tar `+
		endless+` >&5 & wait`, syscall.SysProcAttr{})
	s := l.follow(l.pid("train"))
	l.pid("other")
	l.wantFeeders(s, "tar")
}

// make gives all its commands both ends of a pipe with tokens.
func TestTokensOfMake(t *testing.T) {
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("needs make")
	}
	l := startLine(t, `printf 'all: train other\ntrain other:\n\t+@echo $$$$ >"$$D/$@.part"; mv "$$D/$@.part" "$$D/$@"; '`+
		`'exec sleep 60\n' >"$D/Makefile"; make -j2 -f "$D/Makefile"`, syscall.SysProcAttr{})
	s := l.follow(l.pid("train"))
	l.pid("other")
	wantNone(t, s)
}

// A process that Python forks has the writing end of a pipe of each that was forked before.
func TestForkedSiblings(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("needs python3")
	}
	const program = `import multiprocessing, os, time
def work(name):
    with open(os.environ["D"] + "/part", "w") as f: print(os.getpid(), file=f)
    os.rename(os.environ["D"] + "/part", os.environ["D"] + "/" + name)
    time.sleep(60)
m = multiprocessing.get_context("fork")
for name in "train", "other":
    m.Process(target=work, args=(name,)).start()
    while not os.path.exists(os.environ["D"] + "/" + name): time.sleep(0.01)
`
	l := startLine(t, "python3 -c '"+program+"'", syscall.SysProcAttr{})
	s := l.follow(l.pid("train"))
	l.pid("other")
	wantNone(t, s)
}

// Neither is a program of another user a feeder, nor one of the same user that this one may not trace.
func TestFeederOfAnotherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
	if _, err := exec.LookPath("setpriv"); err != nil {
		t.Skip("needs setpriv")
	}
	const unprivileged = "setpriv --reuid 65534 --regid 65534 --clear-groups "
	for name, script := range map[string]string{
		"the feeder is root's":   `is tar sleep 61 | is train ` + unprivileged + `sleep 60; true`,
		"the job is root's":      `is tar ` + unprivileged + `sleep 61 | is train sleep 60; true`,
		"the feeder may be root": `is tar setpriv --euid 65534 sleep 61 | is train sleep 60; true`,
		"another group":          `is tar setpriv --regid 65534 --clear-groups sleep 61 | is train sleep 60; true`,
	} {
		t.Run(name, func(t *testing.T) {
			l := startLine(t, script, syscall.SysProcAttr{})
			for _, name := range []string{"train", "tar"} {
				pid := l.pid(name)
				l.patiently(func() bool { return nameOf(pid) == "sleep" })
			}
			wantNone(t, l.follow(l.pid("train")))
		})
	}
	t.Run("both are unprivileged", func(t *testing.T) {
		l := startLine(t, `is tar sleep 61 | is train sleep 60; true`,
			syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}})
		l.wantFeeders(l.follow(l.pid("train")), "tar")
	})
}

// A search that has to stop goes on where it stopped, and finds a feeder of a feeder.
func TestSearchGoesOn(t *testing.T) {
	l := startLine(t, `is tar sleep 60 | is cat sleep 61 | is train sleep 62; true`, syscall.SysProcAttr{})
	s := l.follow(l.pid("train"))
	want := []int{l.pid("tar"), l.pid("cat")}
	j := s.jobs[0]
	var found []int
	for calls := 1; ; calls++ {
		for _, o := range j.outsiders(s, j.oldest(), time.Time{}) {
			found = append(found, o.PID)
		}
		if j.feeding.after == 0 {
			if calls < 2 {
				t.Errorf("got %d call, want that it stopped in between", calls)
			}
			break
		}
		if calls > maxHostProcesses {
			t.Fatalf("got %d calls, want an end", calls)
		}
	}
	for _, pid := range want {
		if n := len(slices.DeleteFunc(slices.Clone(found), func(p int) bool { return p != pid })); n != 1 {
			t.Errorf("got process %d %d times in %v, want once", pid, n, found)
		}
	}
}

// The job that was searched longest ago comes first.
func TestSearchesTakeTurns(t *testing.T) {
	s := &Source{}
	first, second := &job{id: "first"}, &job{id: "second"}
	s.jobs = []*job{first, second}
	first.feeding.last = time.Minute
	second.feeding.last, second.feeding.refused = time.Second, time.Minute
	if now := time.Minute + time.Second; !s.waitsLonger(first, now) || s.waitsLonger(second, now) {
		t.Error("got that the second does not come first, want that it does")
	}
	if s.waitsLonger(first, 2*time.Minute) {
		t.Error("got that a job comes first that asks no longer, want that it does not")
	}
}

// A search, on this machine, for a job that reads a pipe.
func BenchmarkSearchForFeeders(b *testing.B) {
	l := startLine(b, `is feeder sleep 600 | is train sleep 600; true`, syscall.SysProcAttr{})
	s := l.follow(l.pid("train"))
	l.wantFeeders(s, "feeder")
	j := s.jobs[0]
	names, err := os.ReadDir("/proc")
	if err != nil {
		b.Fatal(err)
	}
	processes := 0
	for _, name := range names {
		if _, err := strconv.Atoi(name.Name()); err == nil {
			processes++
		}
	}
	for b.Loop() {
		j.outsiders(s, j.oldest(), time.Now().Add(time.Hour))
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(processes), "us/process")
}
