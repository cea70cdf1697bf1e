package chain

import (
	"strings"
	"testing"

	"github.com/stallspan/stallspan/internal/sample"
)

// joining is a program whose first thread waits from 10 ms on for the end of the thread that it created. That one reads
// and works in turn, and has created a third one, which works all the time. first is what the first thread did before.
func joining(until float64, first func(s *script)) *script {
	s := &script{}
	thread := func(at float64, tid, creator int) {
		s.began(at, tid, creator)
		s.events[len(s.events)-1].PID = 1
		s.on(at, tid)
	}
	s.began(0, 1, 0)
	s.on(0, 1)
	first(s)
	thread(8, 2, 1)
	thread(8, 3, 2)
	s.out(10, 1, futex)
	for at := 10.0; at < until; at += 10 {
		s.out(at, 2, disk)
		s.in(at+8, at+8, 2, 0)
	}
	return s
}

// A thread that joins another one waits for what that one does, as long as it has not ended, whatever else works.
func TestJoin(t *testing.T) {
	const until = 3010 // ms
	for what, first := range map[string]func(s *script){
		"its first lock": func(*script) {},
		"a lock after one that another thread released": func(s *script) {
			s.began(0, 4, 1)
			s.events[len(s.events)-1].PID = 1
			s.on(0, 4)
			s.out(1, 1, futex)
			s.in(2, 2, 1, 4)
			s.out(3, 4, futex)
		},
	} {
		tl := joining(until, first).timeline(until)
		check(t, what, tl.Walk(1, ms(2010), ms(until), nil), 200, 0, 800, 0, 0)
		before := joining(2010, first).timeline(2010).TimesAt(1)
		if got := tl.TimesAt(1).Memory - before.Memory; got < ms(170) || got > ms(210) {
			t.Errorf("%s: without storage it takes %v of 1 s, want 180 ms", what, got)
		}
	}
	timeout := joining(until, func(s *script) { // its last lock ended by itself
		s.out(1, 1, futex)
		s.inFrom(sample.Interrupt, 2, 2, 1, 0)
	}).timeline(until)
	before := timeout.TimesAt(2)
	if got := timeout.TimesAt(1).Memory; got <= before.Memory {
		t.Errorf("a wait with a timeout: got %v, want more than the other thread's %v", got, before.Memory)
	}
}

// A thread that waits for others of its job, over a lock, a join or a selector, waits for what they wait for: data of a
// peer, say, that has fallen silent.
func TestSilentPeer(t *testing.T) {
	const until = 9000 // ms
	want := Reason{ForNetwork, "receiving from " + aPeer + ", in another thread", strings.TrimSuffix(aPeer, " over TCP")}
	several := sample.ThreadEvent{State: sample.StateAsleep, Syscall: sysPoll}
	found := sample.ThreadEvent{At: ms(20), Kind: sample.ThreadFound, TID: 2, PID: 1, Syscall: sysPoll,
		File: sample.Socket, Peer: aPeer}
	for what, threads := range map[string][2]sample.ThreadEvent{
		"a lock":                           {futex, receive},
		"a selector":                       {several, receive},
		"a lock of an event loop's thread": {futex, several},
	} {
		s := &script{}
		s.began(0, 1, 0) // all threads ran before the job was followed: who created which is not known
		s.on(0, 1)
		for tid := 2; tid <= 4; tid++ {
			s.began(0, tid, 0)
			s.events[len(s.events)-1].PID = 1
			s.on(0, tid)
		}
		s.out(10, 1, threads[0])
		s.out(10, 2, threads[1])
		if threads[1] == several {
			s.events = append(s.events, found)
			s.inFrom(sample.SoftIRQ, 20, 20, 2, 0)
			s.out(21, 2, several)
		}
		s.out(10, 3, futex) // an idle worker
		s.out(10, 4, pipe)
		tl := s.timeline(until)
		pieces := tl.Walk(1, ms(5000), ms(until), nil)
		if len(pieces) != 1 || tl.Reason(1, &pieces[0]) != want {
			t.Errorf("%s: got %+v, want one piece for %+v", what, pieces, want)
			for i := range pieces {
				t.Log(tl.Reason(1, &pieces[i]))
			}
		}
	}
}
