package switches

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/test/fixture"
)

// facts are what a program knows of its own threads.
type facts = fixture.Facts

func TestMain(m *testing.M) {
	fixture.Serve(map[string]func(facts){"pipe": pipeProgram, "storm": stormProgram, "child": childProgram})
	goleak.VerifyTestMain(m)
}

// stormProgram has two threads that wake each other until its input ends.
func stormProgram(facts) {
	var p [4]int
	must(unix.Pipe2(p[:2], 0))
	must(unix.Pipe2(p[2:], 0))
	var ended atomic.Bool
	var all sync.WaitGroup
	all.Go(func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		ended.Store(true)
	})
	for i := range 2 {
		all.Go(func() {
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
				if i == 0 && ended.Load() {
					must(unix.Close(p[1])) // the other one reads the end
					return
				}
			}
		})
	}
	all.Wait()
}

// childProgram waits for a child process, which sleeps.
func childProgram(f facts) {
	child := exec.Command("sleep", "0.2")
	began := time.Now()
	must(child.Start())
	f["child"] = child.Process.Pid
	must(child.Wait())
	f["took"] = int(time.Since(began))
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
	again.Env = append(os.Environ(), "TMPDIR=/tmp", "GOCOVERDIR=",
		"GORACE=atexit_sleep_ms=0 "+os.Getenv("GORACE")) // or it takes a second to end
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
func trace(t *testing.T, s *Source, program string, during func(*fixture.Program)) (
	f facts, events []sample.ThreadEvent, lost uint64,
) {
	t.Helper()
	p := fixture.Start(t, program)
	if err := s.Follow("job", []int{p.PID()}); err != nil {
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
	ended := p.Run()
	if during != nil {
		during(p)
	}
	for {
		select {
		case f = <-ended:
			if f == nil {
				t.FailNow()
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
		if i > 0 && e.At < events[i-1].At {
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
	if slept < 190*time.Millisecond || slept > time.Duration(f["took"]) {
		t.Errorf("the child slept for %v, want 200 ms, and not longer than the %v that it lived", slept,
			time.Duration(f["took"]))
	}
}

// TestLost: records that find no room are counted.
func TestLost(t *testing.T) {
	if asPlainUser(t) {
		return
	}
	s := opened(t)
	_, _, lost := trace(t, s, "storm", func(p *fixture.Program) {
		defer p.EndInput()
		more := func(switches int) {
			for until := switchesOf(t, p.PID()) + switches; switchesOf(t, p.PID()) < until; {
				time.Sleep(10 * time.Millisecond)
			}
		}
		func() {
			s.mu.Lock() // so that no one empties the buffers
			defer s.mu.Unlock()
			room := 0 // of all CPUs
			for _, r := range s.rings {
				room += len(r.memory)
			}
			more(room / (headerBytes + idBytes))
			s.poll(0)
		}()
		more(100) // the kernel writes the number with the next record
	})
	if lost == 0 {
		t.Error("got no lost records, although no one read while more were written than there is room; want some")
	}
}

// switchesOf returns how often the threads of a process have waited.
func switchesOf(t *testing.T, pid int) (sum int) {
	t.Helper()
	paths, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		_, count, _ := strings.Cut(string(text), "\nvoluntary_ctxt_switches:\t")
		count, _, _ = strings.Cut(count, "\n")
		n, err := strconv.Atoi(count)
		if err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	return sum
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

// TestOtherUsers: processes that may not be followed are one problem, always with the same text.
func TestOtherUsers(t *testing.T) {
	if asPlainUser(t) {
		return
	}
	s := opened(t)
	if err := s.Follow("job", []int{1, os.Getppid()}); err == nil || err.Error() != ErrOtherUser.Error() {
		t.Errorf("got %v, want once %v", err, ErrOtherUser)
	}
	if err := s.Sync("job", []int{1, os.Getppid(), os.Getpid()}); err != nil {
		t.Errorf("got %v for a process that may be followed", err)
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
