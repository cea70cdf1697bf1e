//go:build linux && (amd64 || arm64)

package bpf

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/test/fixture"
	"github.com/stallspan/stallspan/test/slowdisk"
)

// facts are what a program knows of its own threads.
type facts = fixture.Facts

func TestMain(m *testing.M) {
	if slowdisk.Serve() {
		return
	}
	fixture.Serve(programs)
	os.Exit(m.Run())
}

// programs run in a process of their own, followed from their first step on.
var programs = map[string]func(facts){
	"pipe":   pipeProgram,
	"fork":   forkProgram,
	"exec":   execProgram,
	"sleep":  napProgram,
	"futex":  futexProgram,
	"tcp":    tcpProgram,
	"disk":   diskProgram,
	"spin":   spinProgram,
	"fault":  faultProgram,
	"epoll":  epollProgram,
	"device": deviceProgram,
	"rename": renameProgram,
	"poll":   pollProgram,
	"busy":   busyProgram,
	"storm":  stormProgram,
	"away":   awayProgram,
	"reader": readerProgram,
	"read":   readProgram,
}

// needs skips a test where the scheduler cannot be followed.
func needs(t testing.TB) {
	t.Helper()
	needsPart(t, Threads, "needs BPF: ")
}

// needsPart skips a test where this machine or process lacks what a part needs.
func needsPart(t testing.TB, what, skip string) {
	t.Helper()
	if err := Supported("").Of(what); err != nil {
		if missing("") != nil || otherPIDs() != nil || errors.Is(err, unix.EPERM) { // as in a container
			t.Skip(skip, err)
		}
		t.Fatal(err)
	}
}

// openWith opens a Source of threads with other limits than the usual ones.
func openWith(o options) *Source {
	return NewFrom(func(want Wanted) (Tracing, error) { return newTracer("", want, o), nil }, Wanted{Threads: true}, "")
}

func opened(t testing.TB, o options) *Source {
	t.Helper()
	needs(t)
	s := openWith(o)
	if err := s.Refused(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// trace follows a program from its start to its end.
func trace(t testing.TB, s *Source, program string, arguments ...string) (facts, []sample.ThreadEvent) {
	t.Helper()
	p := fixture.Start(t, program, arguments...)
	if err := s.Follow("job", []int{p.PID()}); err != nil {
		t.Fatal(err)
	}
	f := p.Finish()
	events := readAll(t, s)
	t.Cleanup(func() {
		if t.Failed() {
			show(t, events)
		}
	})
	return f, events
}

// readAll reads until nothing more comes, and fails if events were lost.
func readAll(t testing.TB, s *Source) []sample.ThreadEvent {
	t.Helper()
	events, lost := readWithLoss(t, s)
	if lost > 0 {
		t.Errorf("got %d lost events, want none", lost)
	}
	return events
}

func readWithLoss(t testing.TB, s *Source) (events []sample.ThreadEvent, lost uint64) {
	t.Helper()
	start := sample.Now().Mono
	for {
		var r sample.Sample
		if err := s.Read(&r); err != nil {
			t.Fatal(err)
		}
		lost += r.Schedule.Lost
		events = append(events, r.Schedule.Events...)
		if r.Schedule.Until > start {
			return events, lost
		}
		time.Sleep(100 * time.Microsecond)
	}
}

func show(t testing.TB, events []sample.ThreadEvent) {
	t.Helper()
	for _, e := range events[:min(len(events), 500)] {
		text, _ := json.Marshal(e)
		t.Log(string(text))
	}
}

// of returns the events of a thread.
func of(events []sample.ThreadEvent, tid int) []sample.ThreadEvent {
	return slices.DeleteFunc(slices.Clone(events), func(e sample.ThreadEvent) bool { return e.TID != tid })
}

// pauses returns each ThreadOut of a thread that matches, with the ThreadIn that ends it.
func pauses(events []sample.ThreadEvent, tid int, match func(sample.ThreadEvent) bool) [][2]sample.ThreadEvent {
	var found [][2]sample.ThreadEvent
	own := of(events, tid)
	for i := range len(own) - 1 {
		if own[i].Kind == sample.ThreadOut && own[i+1].Kind == sample.ThreadIn && match(own[i]) {
			found = append(found, [2]sample.ThreadEvent{own[i], own[i+1]})
		}
	}
	return found
}

// checkChain fails if a thread's events do not alternate, or are out of order.
func checkChain(t testing.TB, events []sample.ThreadEvent) {
	t.Helper()
	last := map[int]sample.ThreadEvent{}
	for _, e := range events {
		if e.Kind == sample.ThreadNamed || e.Kind == sample.ThreadFound {
			continue
		}
		before, known := last[e.TID]
		if fault := unfit(before, e, known); fault != "" {
			t.Errorf("thread %d: got %s:\n%+v\n%+v", e.TID, fault, before, e)
		}
		if e.At < before.At {
			t.Errorf("thread %d: got %v after %v, want the order of time", e.TID, e.At, before.At)
		}
		last[e.TID] = e
	}
}

// unfit says why e cannot follow before.
func unfit(before, e sample.ThreadEvent, known bool) string {
	switch {
	case !known:
		if e.Kind != sample.ThreadBegan {
			return fmt.Sprintf("first an event of kind %d, want ThreadBegan", e.Kind)
		}
	case e.Kind == sample.ThreadBegan:
		if before.State != sample.StateDead {
			return "another ThreadBegan, want one"
		}
	case e.Kind == sample.ThreadSum:
		if e.From != before.At {
			return fmt.Sprintf("a sum from %v, want it from %v", e.From, before.At)
		}
		if sum := e.Running + e.Ready + e.Blocked + e.Asleep; sum != e.At-e.From {
			return fmt.Sprintf("parts of %v, want %v", sum, e.At-e.From)
		}
	case before.Kind == sample.ThreadSum:
		if e.Kind != sample.ThreadIn {
			return fmt.Sprintf("kind %d after a sum, want ThreadIn", e.Kind)
		}
	case before.Kind == e.Kind:
		return fmt.Sprintf("kind %d twice in a row", e.Kind)
	case e.Kind == sample.ThreadIn && e.Woken != 0 && (e.Woken < before.At || e.Woken > e.At):
		return fmt.Sprintf("woken at %v, want it after %v", e.Woken, before.At)
	}
	return ""
}

// thread runs f on a thread of its own and returns the thread's number and what waits for its end.
func thread(f func()) (tid int, wait func()) {
	started, ended := make(chan int), make(chan struct{})
	go func() {
		runtime.LockOSThread() // and never unlock: the thread ends with the function
		started <- unix.Gettid()
		f()
		close(ended)
	}()
	return <-started, func() { <-ended }
}

// untilIn waits until a thread of this program sleeps in a system call with such a first argument.
func untilIn(tid int, first uintptr) {
	for !sleepsIn(os.Getpid(), tid, first) {
		time.Sleep(time.Millisecond)
	}
}

// sleepsIn reports whether a thread sleeps in a system call with such a first argument.
func sleepsIn(pid, tid int, first uintptr) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/syscall", pid, tid))
	must(err)
	fields := strings.Fields(string(text)) // the number and six arguments; "running", or -1 and two registers
	return len(fields) > 3 && fields[1] == fmt.Sprintf("%#x", first)
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, strings.TrimSpace(err.Error()))
		os.Exit(1)
	}
}
