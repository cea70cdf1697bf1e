package switches

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// TestGuessOfPipe: in recordings of pipeProgram, each reader's waker is the writer of its pipe. On an idle machine all
// are found. On a busy one a reader gets its CPU late, when other threads end their runs: three of four are found, and
// each that is named ran just before.
func TestGuessOfPipe(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the recorded system calls are those of amd64")
	}
	for name, c := range map[string]struct {
		writers map[int]int // by reader
		least   int
	}{
		"pipe-quiet": {map[int]int{8: 5, 9: 8}, 2 * rounds},
		"pipe-busy":  {map[int]int{9: 7, 10: 9}, 2*rounds - 3},
	} {
		t.Run(name, func(t *testing.T) {
			events := replayed(t, filepath.Join("testdata", name+".txt"))
			waits, right := 0, 0
			outs := map[int]sample.ThreadEvent{}
			for _, e := range events {
				out := outs[e.TID]
				if e.Kind == sample.ThreadOut {
					outs[e.TID] = e
				}
				if e.Kind != sample.ThreadIn {
					continue
				}
				delete(outs, e.TID)
				off := outs[e.Waker]
				if e.Waker == e.TID || e.Waker != 0 && off.At != 0 && off.At < e.At-wakeTime {
					t.Errorf("got waker %d of %d at %v, want another thread that ran just before",
						e.Waker, e.TID, e.At)
				}
				if c.writers[e.TID] == 0 || out.File != sample.Pipe || e.At-out.At < 80*time.Millisecond {
					continue
				}
				if waits++; e.Waker == c.writers[e.TID] {
					right++
				}
			}
			if waits != 2*rounds || right < c.least {
				t.Errorf("got the writer as the waker in %d of %d waits, want %d of %d", right, waits, c.least, 2*rounds)
			}
		})
	}
}

// replayed returns the events of recorded switches. A line has the time in us, the thread, and "in", "out",
// "preempted", "fork" with the creator, or "exit". "seen" is a look at the pause that began then: the system call,
// state, kind of file, and when it was over. "read" is a reading.
func replayed(t *testing.T, path string) (events []sample.ThreadEvent) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	const noProcess = 1 << 30 // the numbers of /proc end before
	s, j := newState(), &job{name: "job"}
	follow := func(tid int) {
		if s.threads[tid] == nil {
			s.add(record{kind: forked, tid: tid, pid: tid}, j)
		}
	}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		var us, tid, looked int
		var what string
		var of [3]int
		if n, _ := fmt.Sscan(lines.Text(), &us, &tid, &what, &of[0], &of[1], &of[2], &looked); n < 3 {
			t.Fatalf("line %q is not understood", lines.Text())
		}
		r := record{at: time.Duration(us) * time.Microsecond, tid: noProcess + tid, pid: noProcess + tid}
		switch what {
		case "in":
			r.kind = switchedIn
		case "out", "preempted":
			r.kind, r.preempted = switchedOut, what == "preempted"
		case "exit":
			r.kind = exited
		case "fork":
			follow(noProcess + of[0])
			r.kind, r.parent = forked, noProcess+of[0]
		case "seen":
			for i := range s.changes {
				if c := &s.changes[i]; c.kind == switchedOut && c.tid == r.tid && c.at == r.at {
					c.pause.cause = cause{
						state: sample.ThreadState(of[1]), syscall: of[0], file: sample.FileKind(of[2]),
					}
					c.pause.seen, c.pause.looked = true, time.Duration(looked)*time.Microsecond
				}
			}
			continue
		case "read":
			s.until = r.at
			s.report()
			events = append(events, s.schedule.Events...)
			s.schedule.Events = s.schedule.Events[:0]
			continue
		default:
			t.Fatalf("line %q is not understood", lines.Text())
		}
		if r.kind == switchedIn || r.kind == switchedOut {
			follow(r.tid)
		}
		s.apply(&r)
	}
	for i := range events {
		e := &events[i]
		if e.TID -= noProcess; e.Waker != 0 {
			e.Waker -= noProcess
		}
	}
	return events
}

// TestOrder: a thread that is found asleep gets its event at once, before older records of others are read. Events
// are in the order of time nevertheless, and none is of after the reading's end.
func TestOrder(t *testing.T) {
	s, j := newState(), &job{name: "job"}
	began := monotonic()
	sleeper := s.add(record{at: began, kind: forked, tid: 1 << 30, pid: 1 << 30}, j)
	s.add(record{at: began, kind: forked, tid: 1<<30 + 1, pid: 1 << 30}, j)
	time.Sleep(time.Microsecond)
	s.asleep(sleeper, cause{state: sample.StateAsleep})
	s.apply(&record{at: began, kind: switchedIn, tid: 1<<30 + 1, pid: 1 << 30})
	s.until = sleeper.first - 1
	s.report()
	if got := len(s.schedule.Events); got != 3 {
		t.Errorf("got %d events before the sleeper's, want 3", got)
	}
	s.until = sleeper.first
	s.report()
	if got := len(s.schedule.Events); got != 4 {
		t.Errorf("got %d events in all, want 4", got)
	}
	check(t, s.schedule.Events)
}
