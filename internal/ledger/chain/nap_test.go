package chain

import (
	"testing"

	"github.com/stallspan/stallspan/internal/sample"
)

// loop is a thread that polls with a timeout of 10 ms, from 0 to 100 ms, and what it waits for.
func loop(look float64, ends func(s *script)) *script {
	s := &script{}
	s.began(0, 1, 0)
	s.on(0, 1)
	for i := range 10 {
		at := float64(10 * i)
		s.out(at+look, 1, sample.ThreadEvent{State: sample.StateAsleep, Syscall: sysPoll})
		if i < 9 {
			s.in(at+10, at+10, 1, 0)
		}
	}
	ends(s)
	return s
}

// reader is a thread that waits for the disk for 100 ms, and then wakes the thread that polls.
func reader(s *script) {
	s.began(0, 2, 0)
	s.on(0, 2)
	s.out(0, 2, disk)
	s.in(100, 100, 2, 0)
	s.in(100, 100, 1, 2)
}

// A thread that looks again and again waits for what ends its last sleep.
func TestNaps(t *testing.T) {
	const look = 0.25 // ms
	tl := loop(look, reader).timeline(110)
	check(t, "a worker that reads", tl.Walk(1, ms(0), ms(100), nil), 10*look, 0, 100-10*look, 0, 0)
	before := loop(look, reader).timeline(0).TimesAt(1)
	if got := tl.TimesAt(1).Memory - before.Memory; got > ms(10+10*look) {
		t.Errorf("without storage the thread takes %v of 110 ms, want the last 10 and its looks", got)
	}

	tl = loop(look, func(s *script) { s.inFrom(sample.SoftIRQ, 100, 100, 1, 0) }).timeline(110)
	check(t, "a packet from another machine", tl.Walk(1, ms(0), ms(100), nil), 10*look, 0, 0, 100-10*look, 0)
}

// A thread that works between its sleeps waits in each for something else.
func TestNoNaps(t *testing.T) {
	const work = 2 // ms
	tl := loop(work, reader).timeline(110)
	check(t, "work between sleeps", tl.Walk(1, ms(0), ms(100), nil), 10*work, 0, 10-work, 9*(10-work), 0)
}

// The first result of a worker may take long. Until it is there, the process that reads its pipe is assumed to wait for
// the youngest process that it has begun.
func TestFirstResult(t *testing.T) {
	s := &script{}
	s.began(0, 1, 0)
	s.on(0, 1)
	s.began(1, 2, 1)
	s.on(1, 2)
	s.out(2, 2, disk)
	s.out(2, 1, pipe)
	check(t, "a first result", s.timeline(100).Walk(1, ms(2), ms(100), nil), 0, 0, 98, 0, 0)
	s.in(60, 60, 1, 0)
	s.out(62, 1, pipe)
	check(t, "a pipe that no process of the job writes", s.timeline(100).Walk(1, ms(62), ms(100), nil), 0, 0, 0, 38, 0)
}
