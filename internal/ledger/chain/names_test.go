package chain

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// named has a thread take a name. It need not be followed.
func (s *script) named(at float64, tid, pid int, name string) {
	s.events = append(s.events, sample.ThreadEvent{At: ms(at), Kind: sample.ThreadNamed, TID: tid, PID: pid, Name: name})
}

// reasonsOf returns the reasons of a stretch of a thread's time, in the order of time.
func reasonsOf(t *Timeline, tid int, from, to float64) (names []string) {
	for _, p := range t.Walk(tid, ms(from), ms(to), nil) {
		if p.Kind == Other {
			names = append(names, t.Reason(tid, &p).Name)
		}
	}
	return names
}

// TestNamesOfWakers: a pause that a thread ends which is not followed is named after it.
func TestNamesOfWakers(t *testing.T) {
	unix := receive
	unix.Peer = "unix"
	write := pipe
	write.Syscall = sysWrite
	for want, pause := range map[string]sample.ThreadEvent{
		"futex, held by PID 77 redis":                  futex,
		"reading a pipe from PID 77 redis":             pipe,
		"writing to a pipe to PID 77 redis":            write,
		"receiving from a unix socket of PID 77 redis": unix,
		"receiving from 10.0.0.7:443 over TCP":         receive,
		"poll of several files, woken by PID 77 redis": {State: sample.StateAsleep, Syscall: sysPoll},
		"child process PID 77 redis":                   child,
	} {
		s := &script{}
		s.began(0, 1, 0)
		s.on(0, 1)
		s.out(10, 1, pause)
		s.named(80, 78, 77, "redis")
		s.in(90, 90, 1, 78)
		s.events[len(s.events)-1].WakerPID = 77
		if got := reasonsOf(s.timeline(100), 1, 20, 80); len(got) != 1 || got[0] != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestNamesOfThreads: a thread waits for another one, which sleeps.
func TestNamesOfThreads(t *testing.T) {
	tests := map[string]struct {
		pid  int
		name string
	}{
		"sleep in the program, in thread feeder":      {1, "feeder"},
		"sleep in the program, in another thread":     {1, "python3"},
		"sleep in the program, in process feeder":     {2, "feeder"},
		"sleep in the program, in another process":    {2, "python3"},
		"sleep in the program, in thread feed_[2J___": {1, "feed\x1b[2J\n\xff\u202e"},
	}
	for want, test := range tests {
		s := &script{}
		s.began(0, 1, 0)
		s.named(0, 1, 1, "python3")
		s.began(0, 2, 1)
		s.events[len(s.events)-1].PID = test.pid
		s.named(1, 2, test.pid, test.name)
		s.on(1, 2)
		s.out(10, 1, pipe)
		s.out(10, 2, nap)
		s.in(80, 80, 2, 0)
		s.in(90, 90, 1, 2)
		if got := reasonsOf(s.timeline(100), 1, 20, 70); len(got) != 1 || got[0] != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestNamesAreBounded: a server with a peer of its own for each pause keeps names for the newest.
func TestNamesAreBounded(t *testing.T) {
	timeline := NewTimeline()
	events := []sample.ThreadEvent{{Kind: sample.ThreadBegan, TID: 1, PID: 1, Job: "job"}}
	at := time.Duration(0)
	for i := range 40 * maxReasons {
		at = time.Duration(i) * 100 * time.Millisecond
		out := receive
		out.At, out.Kind, out.TID, out.PID = at+10*time.Millisecond, sample.ThreadOut, 1, 1
		out.Peer = fmt.Sprintf("10.0.%d.%d:9 over TCP", i/256, i%256)
		events = append(events, out, sample.ThreadEvent{At: at + 60*time.Millisecond, Kind: sample.ThreadIn, TID: 1, PID: 1})
		timeline.Learn(&sample.Schedule{Until: at + 100*time.Millisecond, Events: events, Arch: "amd64"})
		timeline.Forget(at - 5*time.Second)
		events = events[:0]
		want := "receiving from " + out.Peer
		from := float64((at + 20*time.Millisecond).Milliseconds())
		if got := reasonsOf(timeline, 1, from, from+10); len(got) != 1 || got[0] != want {
			t.Fatalf("pause %d: got %q, want %q", i, got, want)
		}
	}
	if n := len(timeline.reasons.all); n > maxReasons+ReasonKinds {
		t.Errorf("got %d reasons, want at most %d", n, maxReasons+ReasonKinds)
	}
	for i := range 2 * maxOthers {
		timeline.name(&sample.ThreadEvent{TID: 1000 + i, Name: strings.Repeat("x", 300)})
	}
	if n := len(timeline.others); n > maxOthers {
		t.Errorf("got %d names of threads that are not followed, want at most %d", n, maxOthers)
	}
	if n := len(timeline.others[1000+2*maxOthers-1]); n != maxName {
		t.Errorf("got a name of %d bytes, want %d", n, maxName)
	}
}

// TestNamesOfPolls: a wait for several files has the name of the one that ended it.
func TestNamesOfPolls(t *testing.T) {
	driver := sample.ThreadEvent{State: sample.StateAsleep, Syscall: sysPoll, File: sample.CharDevice, Detail: 195 << 8}
	several := sample.ThreadEvent{State: sample.StateAsleep, Syscall: sysPoll, Detail: 3}
	found := sample.ThreadEvent{At: ms(90), Kind: sample.ThreadFound, TID: 1, PID: 1, Syscall: sysPoll}
	found.File, found.Peer = sample.Socket, aPeer
	for want, events := range map[Reason][]sample.ThreadEvent{
		{Kind: ForGPU, Name: "GPU driver"}:                                              {driver},
		{Kind: ForEvent, Name: "poll of several files"}:                                 {several},
		{ForNetwork, "receiving from " + aPeer, strings.TrimSuffix(aPeer, " over TCP")}: {several, found},
	} {
		s := &script{}
		s.began(0, 1, 0)
		s.on(0, 1)
		s.out(10, 1, events[0])
		s.events = append(s.events, events[1:]...)
		s.in(90, 90, 1, 0)
		timeline := s.timeline(100)
		pieces := timeline.Walk(1, ms(20), ms(80), nil)
		if len(pieces) != 1 || timeline.Reason(1, &pieces[0]) != want {
			t.Errorf("got %v, want one piece for %v", pieces, want)
		}
	}
}
