package ledger

import (
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/ledger/chain"
	"github.com/stallspan/stallspan/internal/sample"
)

// A child that ended before any report of it does not take the place of the thread that waits for it.
func TestLeaderWithoutAReport(t *testing.T) {
	began := func(tid int, at time.Duration) sample.ThreadEvent {
		return sample.ThreadEvent{Kind: sample.ThreadBegan, TID: tid, PID: tid, Job: "job", At: at}
	}
	timeline := chain.NewTimeline()
	timeline.Learn(&sample.Schedule{Until: time.Second, Events: []sample.ThreadEvent{began(1, time.Millisecond)}})
	s := schedule{timeline: timeline}
	s.lead(1)
	s.lead(2)
	if s.leader != 1 {
		t.Errorf("got the leader %d, want 1 while nothing is reported of 2", s.leader)
	}
	timeline.Learn(&sample.Schedule{Until: 2 * time.Second, Events: []sample.ThreadEvent{began(2, 1500*time.Millisecond)}})
	s.choose()
	if s.leader != 2 {
		t.Errorf("got the leader %d, want 2 once it is reported", s.leader)
	}
	s.lead(0)
	if s.leader != 2 {
		t.Errorf("got the leader %d for an unknown one, want 2 as before", s.leader)
	}
}

// A leader that is younger than the stretch that is divided has the time of the thread that created it.
func TestLeaderYoungerThanTheStretch(t *testing.T) {
	at := func(ms int) time.Duration { return time.Duration(ms) * time.Millisecond }
	event := func(kind sample.ThreadEventKind, tid, creator, ms int) sample.ThreadEvent {
		return sample.ThreadEvent{Kind: kind, TID: tid, PID: tid, Job: "job", Creator: creator, At: at(ms)}
	}
	timeline := chain.NewTimeline()
	timeline.Learn(&sample.Schedule{Until: at(1100), Events: []sample.ThreadEvent{
		event(sample.ThreadBegan, 1, 0, 1), event(sample.ThreadIn, 1, 0, 2), event(sample.ThreadBegan, 2, 1, 1050),
		event(sample.ThreadBegan, 3, 2, 1060), event(sample.ThreadBegan, 4, 9, 1050),
	}})
	for _, test := range []struct {
		tid, from, to int
		want          bool
	}{
		{1, 900, 1000, true}, {2, 900, 1000, true}, {3, 900, 1000, true}, {3, 1000, 1055, true},
		{4, 900, 1000, false}, // nothing is known of its creator
		{5, 900, 1000, false},
	} {
		if got := timeline.Covers(test.tid, at(test.from), at(test.to)); got != test.want {
			t.Errorf("thread %d from %d to %d ms: got covered %v, want %v", test.tid, test.from, test.to, got, test.want)
		}
	}
	for _, piece := range timeline.Walk(3, at(900), at(1000), nil) {
		if piece.Kind != chain.Work {
			t.Errorf("got %+v, want the time of thread 1, which runs", piece)
		}
	}
}
