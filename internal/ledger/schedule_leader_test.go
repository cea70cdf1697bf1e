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
