package chain

import (
	"testing"

	"github.com/stallspan/stallspan/internal/sample"
)

// A signal from outside ends a pipeline: a shell (1) waits for its children, a reader (3) for what another program (2)
// computes. They waited for that one, and not for who sent the signal.
func TestKilledPipeline(t *testing.T) {
	for what, order := range map[string][]int{
		"the one that works ends last": {3, 1, 2}, "or first": {2, 3, 1}, "or second": {1, 2, 3},
	} {
		s := &script{}
		s.began(0, 1, 0)
		s.on(0, 1)
		s.began(5, 2, 1)
		s.on(5, 2)
		s.began(6, 3, 1)
		s.on(6, 3)
		s.out(10, 1, child)
		s.out(10, 3, pipe)
		tl := s.timeline(1000)
		end := &script{}
		at := 1500.0
		for _, tid := range order {
			if tid != 2 {
				end.in(at, at, tid, 99)
			}
			at++
			end.out(at, tid, died)
		}
		tl.Learn(&sample.Schedule{Until: ms(1510), Events: end.events, Arch: "amd64"})
		for _, tid := range []int{1, 3} {
			if work, _, _, other, _ := shares(tl.Walk(tid, ms(10), ms(1500), nil)); work < 1485 {
				t.Errorf("%s: thread %d: got %v ms of work and %v of other, want 1490 of work", what, tid, work, other)
			}
		}
		if got := tl.TimesAt(1).Memory; got < ms(1480) {
			t.Errorf("%s: without storage it takes %v, want about 1.5 s", what, got)
		}
	}
}

// What a thread does after a sleep shows that the sleep was not cut: a program outside the jobs ended it.
func TestSleepEndedFromOutside(t *testing.T) {
	s := &script{}
	s.began(0, 1, 0)
	s.on(0, 1)
	s.began(5, 2, 1)
	s.on(5, 2)
	s.out(10, 1, pipe)
	tl := s.timeline(1000)
	more := &script{}
	more.in(1500, 1500, 1, 99)
	more.out(1501, 1, futex)
	more.in(1502, 1502, 1, 2)
	more.out(1503, 1, died)
	tl.Learn(&sample.Schedule{Until: ms(1510), Events: more.events, Arch: "amd64"})
	if work, _, _, other, _ := shares(tl.Walk(1, ms(10), ms(1500), nil)); other != 1490 {
		t.Errorf("got %v ms of work and %v of other, want 1490 of other", work, other)
	}
}

// The shell that began a reader is no child of it, although nothing says whose child it is.
func TestParentIsNoChild(t *testing.T) {
	s := &script{}
	s.began(0, 1, 0)
	s.on(0, 1)
	s.began(6, 3, 1)
	s.on(6, 3)
	s.out(10, 1, child)
	s.out(10, 3, pipe)
	tl := s.timeline(1000)
	if work, _, _, other, _ := shares(tl.Walk(3, ms(10), ms(900), nil)); other != 890 {
		t.Errorf("got %v ms of work and %v of other, want 890 of other", work, other)
	}
}
