package chain

import "testing"

// A shell (1) waits for a program (2) that sleeps: nothing has ended either of the sleeps, and both take their time
// without storage, too. The same with one more shell between them.
func TestSleepersTakeTheirTime(t *testing.T) {
	for _, shells := range []int{1, 2, 3} {
		s := &script{}
		s.began(0, 1, 0)
		s.on(0, 1)
		for tid := 1; tid <= shells; tid++ {
			at := 10 * float64(tid)
			s.began(at, tid+1, tid)
			s.on(at, tid+1)
			s.out(at+1, tid, child)
		}
		s.out(50, shells+1, nap)
		for _, until := range []float64{100, 1000, 10000} {
			if got := s.timeline(until).TimesAt(1).Memory; got != ms(until) {
				t.Errorf("%d shells, after %v ms: without storage it takes %v, want all of it", shells, until, got)
			}
		}
	}
}

// A shell waits for a program that waits for storage, in turn: the shell has waited for storage.
func TestShellOfReader(t *testing.T) {
	s := &script{}
	s.began(0, 1, 0)
	s.on(0, 1)
	s.began(10, 2, 1)
	s.on(10, 2)
	s.out(11, 1, child)
	s.began(20, 3, 2)
	s.on(20, 3)
	s.out(21, 2, child)
	s.out(30, 3, disk)
	if got := s.timeline(1000).TimesAt(1).Memory; got != ms(30) {
		t.Errorf("without storage it takes %v, want 30 ms", got)
	}
}
