package chain

import (
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// stolenFrom returns the event with which a thread leaves its CPU, after the hypervisor stole so many milliseconds.
func stolenFrom(e sample.ThreadEvent, stolen float64, fetched uint64) sample.ThreadEvent {
	e.Stolen, e.Fetched = ms(stolen), fetched
	return e
}

func TestStolenTime(t *testing.T) {
	tests := map[string]struct {
		write func(s *script)
		want  []float64
	}{
		"from work": {func(s *script) {
			s.out(50, 1, stolenFrom(preempt, 20, 0))
			s.on(50, 1)
		}, []float64{80, 0, 0, 20, 0}},
		"never more than the thread had": {func(s *script) {
			s.out(50, 1, stolenFrom(preempt, 900, 0))
			s.on(50, 1)
		}, []float64{50, 0, 0, 50, 0}},
		"from a read": {func(s *script) {
			s.out(50, 1, stolenFrom(disk, 20, 4096))
			s.in(60, 60, 1, 0)
		}, []float64{70, 0, 30, 0, 0}},
		"from a read, while a neighbour takes a tenth": {func(s *script) {
			s.out(40, 1, stolenFrom(preempt, 4, 0))
			s.on(40, 1)
			s.out(80, 1, stolenFrom(disk, 14, 4096))
			s.in(90, 90, 1, 0)
		}, []float64{72, 0, 20, 8, 0}},
		"from reads that are summed": {func(s *script) {
			s.events = append(s.events, sample.ThreadEvent{
				At: ms(100), Kind: sample.ThreadSum, TID: 1, PID: 1, Syscall: sysRead, Running: ms(60), Blocked: ms(40),
				Stolen: ms(10), Fetched: 1 << 20,
			})
		}, []float64{50, 0, 50, 0, 0}},
	}
	for name, test := range tests {
		s := &script{}
		s.began(0, 1, 0)
		s.on(0, 1)
		test.write(s)
		timeline := s.timeline(100)
		pieces := timeline.Walk(1, 0, ms(100), nil)
		for i := range pieces {
			pieces[i].Fetch = 0 // not what this is about
			stolen := Reason{Kind: ForSteal, Name: "stolen by the hypervisor"}
			if p := &pieces[i]; p.Kind == Other && timeline.Reason(1, p) != stolen {
				t.Errorf("%s: got %v, want stolen time", name, timeline.Reason(1, p))
			}
		}
		check(t, name, pieces, test.want...)
	}
}

// TestStolenTimeStaysInReplay: without storage, a neighbour on the same host takes its time as before.
func TestStolenTimeStaysInReplay(t *testing.T) {
	s := &script{}
	s.began(0, 1, 0)
	s.on(0, 1)
	s.out(50, 1, stolenFrom(preempt, 20, 0))
	s.on(50, 1)
	if got := s.timeline(100).TimesAt(1); got.Memory != ms(100) || got.Work != ms(30) {
		t.Errorf("got %v without storage and %v of work, want 100 ms and 30 ms", got.Memory, got.Work)
	}
}

func TestStolenTimeWithoutOtherEvidence(t *testing.T) {
	usual, forData := (&steal{}).split(5*time.Millisecond, 50*time.Millisecond, true)
	if usual != 0 || forData != 5*time.Millisecond {
		t.Errorf("got %v and %v, want all for the data: nothing else is known", usual, forData)
	}
}
