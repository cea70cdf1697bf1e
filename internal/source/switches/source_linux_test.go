package switches

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/sample"
)

// programVariable names what the test binary does instead of testing.
const programVariable = "STALLSPAN_SWITCHES_PROGRAM"

// facts are what a program knows of its own threads.
type facts map[string]int

func TestMain(m *testing.M) {
	name := os.Getenv(programVariable)
	if name == "" {
		goleak.VerifyTestMain(m)
		return
	}
	runtime.LockOSThread()
	_, _ = os.Stdin.Read(make([]byte, 1)) // until it is followed
	f := facts{"main": unix.Gettid()}
	map[string]func(facts){"pipe": pipeProgram, "storm": stormProgram, "child": childProgram}[name](f)
	_ = json.NewEncoder(os.Stdout).Encode(f)
	os.Exit(0)
}

// pipeProgram has a process that waits for a pipe for 100 ms, several times, until another one writes. Processes of the
// shell have no threads of a runtime, which would wake up next to them.
func pipeProgram(facts) {
	must(exec.Command("sh", "-c", "for i in 1 2 3 4 5 6; do sleep 0.1; echo a; done | "+
		"while read x; do echo $x; done | cat >/dev/null").Run())
}

const rounds = 6

// stormProgram has two threads that wake each other for 600 ms.
func stormProgram(facts) {
	var p [4]int
	must(unix.Pipe2(p[:2], 0))
	must(unix.Pipe2(p[2:], 0))
	began := time.Now()
	var both sync.WaitGroup
	for i := range 2 {
		both.Go(func() {
			runtime.LockOSThread()
			b := make([]byte, 1)
			for n := 1; n > 0; {
				if i == 0 {
					_, _ = unix.Write(p[1], b)
					n, _ = unix.Read(p[2], b)
				} else {
					n, _ = unix.Read(p[0], b)
					_, _ = unix.Write(p[3], b)
				}
				if i == 0 && time.Since(began) > 600*time.Millisecond {
					must(unix.Close(p[1])) // the other one reads the end
					return
				}
			}
		})
	}
	both.Wait()
}

// childProgram waits for a child process, which sleeps.
func childProgram(f facts) {
	child := exec.Command("sleep", "0.2")
	must(child.Start())
	f["child"] = child.Process.Pid
	must(child.Wait())
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// plainUser is a user and a group without rights.
const plainUser = 65534

// asPlainUser runs a test again as such a user, if this one is root, and reports whether the caller is the latter.
func asPlainUser(t *testing.T) bool {
	t.Helper()
	if os.Getuid() != 0 {
		if err := Supported(); errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSYS) {
			t.Skip(err)
		} else if err != nil {
			t.Fatal(err)
		}
		return false
	}
	again := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
	again.Dir = "/"
	again.Env = append(os.Environ(), "TMPDIR=/tmp", "GOCOVERDIR=")
	again.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: plainUser, Gid: plainUser}}
	out, err := again.CombinedOutput()
	switch {
	case err != nil:
		t.Errorf("as user %d: %v\n%s", plainUser, err, out)
	case strings.Contains(string(out), "SKIP"):
		t.Skipf("%s", out)
	}
	return true
}

// trace follows a program from its first step to its end. during is called while it runs; it may be nil.
func trace(t *testing.T, s *Source, program string, during func()) (f facts, events []sample.ThreadEvent, lost uint64) {
	t.Helper()
	c := exec.Command("/proc/self/exe")
	c.Env = append(os.Environ(), programVariable+"="+program)
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(50 * time.Millisecond) // it has executed this binary
	if err := s.Follow("job", []int{c.Process.Pid}); err != nil {
		t.Fatal(err)
	}
	take := func() {
		var reading sample.Sample
		if err := s.Read(&reading); err != nil {
			t.Fatal(err)
		}
		if !reading.Schedule.Guessed {
			t.Error("got a reading that is not marked as guessed")
		}
		events = append(events, reading.Schedule.Events...)
		lost += reading.Schedule.Lost
	}
	_ = in.Close()
	if during != nil {
		during()
	}
	ended := make(chan []byte)
	go func() {
		text, _ := io.ReadAll(out)
		ended <- text
	}()
	for {
		select {
		case text := <-ended:
			if err := errors.Join(json.Unmarshal(text, &f), c.Wait()); err != nil {
				t.Fatalf("got %v and %q, want the facts of the program", err, text)
			}
			take()
			return f, events, lost
		case <-time.After(50 * time.Millisecond):
			take()
		}
	}
}

func opened(t *testing.T) *Source {
	t.Helper()
	s, err := New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// check checks that the events are in order, and that the states of each thread alternate.
func check(t *testing.T, events []sample.ThreadEvent) {
	t.Helper()
	last := map[int]sample.ThreadEventKind{}
	for i, e := range events {
		if i > 0 && e.At < events[i-1].At && e.Kind != sample.ThreadBegan {
			t.Fatalf("event %d is at %v, after one at %v", i, e.At, events[i-1].At)
		}
		if e.Kind == sample.ThreadNamed {
			continue
		}
		switch was := last[e.TID]; {
		case was == 0 && e.Kind != sample.ThreadBegan, e.Kind == sample.ThreadIn && was == sample.ThreadIn,
			e.Kind == sample.ThreadOut && was == sample.ThreadOut && e.State != sample.StateDead:
			t.Errorf("event %d of thread %d has kind %d, after kind %d", i, e.TID, e.Kind, was)
		}
		last[e.TID] = e.Kind
	}
}

// TestPipe: a plain user sees what a thread waits for, and which thread ends that.
func TestPipe(t *testing.T) {
	if asPlainUser(t) {
		return
	}
	s := opened(t)
	f, events, lost := trace(t, s, "pipe", nil)
	check(t, events)
	if lost != 0 {
		t.Errorf("got %d lost records, want none", lost)
	}
	readers := map[int]bool{}
	wakers := map[int][]int{} // by reader
	outs := map[int]sample.ThreadEvent{}
	for _, e := range events {
		out := outs[e.TID]
		switch {
		case e.Kind == sample.ThreadOut:
			outs[e.TID] = e
		case e.Kind == sample.ThreadIn && out.File == sample.Pipe && e.At-out.At > 80*time.Millisecond && e.PID != f["main"]:
			readers[e.TID] = true
			wakers[e.TID] = append(wakers[e.TID], e.Waker)
			if out.State != sample.StateAsleep || out.Syscall != unix.SYS_READ {
				t.Errorf("got %+v, want asleep in read of a pipe", out)
			}
		}
	}
	if len(readers) != 2 {
		t.Fatalf("got %d threads that wait for a pipe, want 2", len(readers))
	}
	most := 0
	for _, by := range wakers { // cat is woken by the shell that reads
		if len(by) < rounds-1 || len(by) > rounds {
			t.Errorf("got %d waits, want %d", len(by), rounds)
		}
		n := 0
		for _, tid := range by {
			if readers[tid] {
				n++
			}
		}
		most = max(most, n)
	}
	if most < rounds-2 { // they are guessed
		t.Errorf("got one reader as the waker of the other one %d times, want %d; wakers %v", most, rounds, wakers)
	}
}

// TestChild: processes that a job creates are followed, to their end.
func TestChild(t *testing.T) {
	if asPlainUser(t) {
		return
	}
	f, events, _ := trace(t, opened(t), "child", nil)
	check(t, events)
	of := slices.DeleteFunc(slices.Clone(events), func(e sample.ThreadEvent) bool { return e.TID != f["child"] })
	if len(of) < 3 || of[0].Kind != sample.ThreadBegan || of[0].Creator == 0 {
		t.Fatalf("got %+v of the child, want its beginning, and more", of)
	}
	if last := of[len(of)-1]; last.Kind != sample.ThreadOut || last.State != sample.StateDead {
		t.Errorf("got %+v as the child's last event, want its end", last)
	}
	if !slices.ContainsFunc(of, func(e sample.ThreadEvent) bool {
		return e.Kind == sample.ThreadNamed && e.Name == "sleep"
	}) {
		t.Errorf("got %+v of the child, want that it is called sleep", of)
	}
	slept := time.Duration(0)
	for i := 1; i < len(of); i++ {
		if of[i].Kind == sample.ThreadIn && of[i-1].Kind == sample.ThreadOut && of[i-1].State == sample.StateAsleep {
			slept += of[i].At - of[i-1].At
		}
	}
	if slept < 190*time.Millisecond || slept > 400*time.Millisecond {
		t.Errorf("the child slept for %v, want 200 ms", slept)
	}
}

// TestLost: records that find no room are counted.
func TestLost(t *testing.T) {
	if asPlainUser(t) {
		return
	}
	s := opened(t)
	_, _, lost := trace(t, s, "storm", func() {
		s.mu.Lock() // so that no one empties the buffers
		defer s.mu.Unlock()
		time.Sleep(300 * time.Millisecond)
	})
	if lost == 0 {
		t.Error("got no lost records, although no one read for 300 ms; want some")
	}
}

// TestBounds: what has no room is refused, or counted as lost.
func TestBounds(t *testing.T) {
	s := newState()
	for i := range maxThreads + 5 {
		s.add(record{tid: i + 1}, &job{})
	}
	if len(s.threads) != maxThreads || s.lost != 5 {
		t.Errorf("got %d threads, %d lost; want %d, 5 lost", len(s.threads), s.lost, maxThreads)
	}
	for i := range maxJobs {
		s.jobs[fmt.Sprint(i)] = &job{}
	}
	if err := s.Follow("one more", nil); err == nil {
		t.Errorf("got no error for job %d", maxJobs+1)
	}
	s.rings = make([]*ring, maxEvents+1)
	if err := s.attach(&job{}, 1); err == nil {
		t.Errorf("got no error for %d events", maxEvents+1)
	}
}

// TestLimit: a job that switches too often is not followed for a while, and the reading reports missing events.
func TestLimit(t *testing.T) {
	s := newState()
	j := &job{name: "job", known: map[int]struct{}{1: {}}}
	s.jobs["job"] = j
	s.add(record{tid: 1}, j)
	for range maxBusy {
		if len(s.threads) != 1 || j.resting != 0 {
			t.Fatalf("got %d threads, resting %v; want 1 that is followed", len(s.threads), j.resting)
		}
		j.switches = maxRate/10 + 1
		if err := s.limit(100 * time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.threads) != 0 || j.resting == 0 || s.lost == 0 {
		t.Errorf("got %d threads, resting %v, %d lost; want none, resting, some", len(s.threads), j.resting, s.lost)
	}
	j.resting = 1
	if err := s.limit(100 * time.Millisecond); err != nil || j.resting != 0 {
		t.Errorf("after its rest: got %v, resting %v; want that it is followed again", err, j.resting)
	}
}

// TestClose: a closed source has no descriptor and no memory of the kernel, and refuses.
func TestClose(t *testing.T) {
	if asPlainUser(t) {
		return
	}
	before := descriptors(t)
	s := opened(t)
	if err := s.Follow("job", []int{os.Getpid()}); err != nil {
		t.Fatal(err)
	}
	if got := descriptors(t); got <= before {
		t.Errorf("got %d descriptors, want more than %d", got, before)
	}
	s.Unfollow("job")
	if s.events != 0 || len(s.threads) != 0 {
		t.Errorf("without a job: got %d events and %d threads, want none", s.events, len(s.threads))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if got := descriptors(t); got != before {
		t.Errorf("after Close: got %d descriptors, want %d", got, before)
	}
	if err := s.Read(&sample.Sample{}); !errors.Is(err, errClosed) {
		t.Errorf("Read after Close: got %v, want %v", err, errClosed)
	}
	if err := s.Follow("job", nil); !errors.Is(err, errClosed) {
		t.Errorf("Follow after Close: got %v, want %v", err, errClosed)
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, fd := range all {
		if name, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && strings.Contains(name, "perf_event") {
			n++
		}
	}
	return n
}

func TestParseCPUs(t *testing.T) {
	for in, want := range map[string][]int{
		"0": {0}, "0-2,5": {0, 1, 2, 5}, "": nil, "3-1": nil, "0-99999": nil, "a": nil,
	} {
		got, err := parseCPUs(in)
		if (err == nil) != (want != nil) || want != nil && !slices.Equal(got, want) {
			t.Errorf("%q: got %v, %v; want %v", in, got, err, want)
		}
	}
}
