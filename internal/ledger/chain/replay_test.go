package chain

import (
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

const sysYield = 24

// TestYieldingIsNoWork: a thread of a pool yields again and again, and then wakes the first one.
func TestYieldingIsNoWork(t *testing.T) {
	s := &script{}
	s.began(0, 1, 0)
	s.began(0, 2, 1)
	s.events[1].PID = 1
	s.on(0, 1)
	s.on(0, 2)
	s.out(10, 1, futex)
	for at := 10.0; at < 60; at += 10 {
		s.out(at, 2, sample.ThreadEvent{State: sample.StateReady, Syscall: sysYield})
		s.on(at+0.01, 2)
	}
	s.out(69.9, 2, preempt)
	s.in(70, 70, 1, 2)
	s.out(80, 1, futex)
	got := s.timeline(80).TimesAt(1).Work
	if want := ms(10 + 20 + 10); got < want-ms(1) || got > want { // the pool's thread from 50 to 70 ms
		t.Errorf("got %v of work, want %v", got, want)
	}
}

// TestPreemptionForStorage checks which preemptions a replay without storage leaves out.
func TestPreemptionForStorage(t *testing.T) {
	const length = 0.5
	tests := map[string]struct {
		write func(s *script)
		gone  bool
	}{
		"by a thread that is not the job's, while another one waits for data": {func(s *script) {
			s.out(1, 2, disk)
			s.out(10, 1, preempt)
			s.on(10+length, 1)
		}, true},
		"after a request": {func(s *script) {
			s.out(5, 1, sample.ThreadEvent{State: sample.StateReady, Fetched: 4096})
			s.on(5, 1)
			s.out(10, 1, preempt)
			s.on(10+length, 1)
		}, true},
		"long after a request": {func(s *script) {
			s.out(5, 1, sample.ThreadEvent{State: sample.StateReady, Fetched: 4096})
			s.on(5, 1)
			s.out(16, 1, preempt)
			s.on(16+length, 1)
		}, false},
		"while no thread wants data": {func(s *script) {
			s.out(10, 1, preempt)
			s.on(10+length, 1)
		}, false},
		"by a thread of the job": {func(s *script) {
			s.out(1, 2, disk)
			s.out(2, 3, pipe)
			s.out(10, 1, preempt)
			s.in(10, 9.9, 3, 0)
			s.on(10+length, 1)
		}, false},
		"by a thread of the job that is reported first": {func(s *script) {
			s.out(1, 2, disk)
			s.out(2, 3, pipe)
			s.in(10, 9.9, 3, 0)
			s.out(10, 1, preempt)
			s.on(10+length, 1)
		}, false},
		"for a whole slice": {func(s *script) {
			s.out(1, 2, disk)
			s.out(10, 1, preempt)
			s.on(10+1.5*length, 1)
		}, false},
		"when the wait of another one is over": {func(s *script) {
			s.out(1, 2, disk)
			s.in(3, 3, 2, 0)
			s.out(14, 1, preempt)
			s.on(14+length, 1)
		}, false},
		"after the states of the others were lost": {func(s *script) {
			s.out(1, 2, disk)
			s.lost = 1
		}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := &script{}
			for tid := 1; tid <= 3; tid++ {
				s.began(0, tid, 0)
				s.on(0, tid)
			}
			test.write(s)
			timeline := s.timeline(30)
			if s.lost > 0 {
				timeline.Learn(&sample.Schedule{Until: ms(50), Lost: 1})
				again := &script{}
				again.on(51, 1)
				again.out(65, 1, preempt)
				again.on(65+length, 1)
				timeline.Learn(&sample.Schedule{Until: ms(70), Events: again.events})
			}
			gone := time.Duration(0)
			for _, part := range timeline.threads[1].segments {
				if part.serves {
					gone += part.to - part.from
				}
			}
			if want := map[bool]time.Duration{true: ms(length)}[test.gone]; gone != want {
				t.Errorf("got %v for storage, want %v", gone, want)
			}
			of := timeline.TimesAt(1)
			if test.gone && of.Pending-of.Memory != ms(length) {
				t.Errorf("the replay without storage leaves out %v, want %v", of.Pending-of.Memory, ms(length))
			}
		})
	}
}

// TestWorkAfterPause: 20 ms of work after a pause of 40 ms for storage, and after one of 40 ms for something else.
func TestWorkAfterPause(t *testing.T) {
	for name, test := range map[string]struct {
		pause   sample.ThreadEvent
		without float64
	}{
		"storage":         {disk, 20 + 20 - 1},
		"something else":  {nap, 20 + 40 + 20},
		"shortly storage": {disk, 20 + 20}, // less than 1 ms
	} {
		s := &script{}
		s.began(0, 1, 0)
		s.on(0, 1)
		s.out(20, 1, test.pause)
		back := 60.0
		if name == "shortly storage" {
			back = 20.5
		}
		s.in(back, back, 1, 0)
		s.out(back+20, 1, nap)
		got := s.timeline(back + 20).TimesAt(1)
		if want := ms(test.without); (got.Memory - want).Abs() > 10*time.Microsecond {
			t.Errorf("%s: got %v without storage, want %v", name, got.Memory, want)
		}
	}
}
