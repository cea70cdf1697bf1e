//go:build linux && (amd64 || arm64)

package schedule

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/sample"
)

const (
	stormLength = 300 * time.Millisecond
	stormSleep  = 200 * time.Millisecond
)

// stormProgram has two threads wake each other through pipes as fast as they can. Then one of them sleeps.
func stormProgram(f facts) {
	var forth, back [2]int
	must(unix.Pipe2(forth[:], 0))
	must(unix.Pipe2(back[:], 0))
	pass := func(from, to int) bool {
		buf := make([]byte, 1)
		n, err := unix.Read(from, buf)
		must(err)
		if n == 0 {
			return false
		}
		_, err = unix.Write(to, buf)
		must(err)
		return true
	}
	ping, wait := thread(func() {
		_, err := unix.Write(forth[1], []byte{0})
		must(err)
		for end := time.Now().Add(stormLength); time.Now().Before(end); {
			pass(back[0], forth[1])
		}
		wait := unix.NsecToTimespec(stormSleep.Nanoseconds())
		must(unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &wait, nil))
		must(unix.Close(forth[1]))
	})
	pong, wait2 := thread(func() {
		for pass(forth[0], back[1]) {
		}
	})
	f["ping"], f["pong"] = ping, pong
	wait()
	wait2()
}

// storm follows the program and reads as the agent does. It returns the events, and whether the long sleep was reported
// while it lasted.
func storm(t *testing.T, s *Source) (f facts, events []sample.ThreadEvent, inTime bool, lost uint64) {
	t.Helper()
	p := start(t, "storm")
	if err := s.Follow("job", []int{p.pid()}); err != nil {
		t.Fatal(err)
	}
	done := make(chan facts)
	go func() { done <- p.finish() }()
	for {
		select {
		case f = <-done:
			more, missed := readWithLoss(t, s)
			return f, append(events, more...), inTime, lost + missed
		case <-time.After(20 * time.Millisecond):
		}
		var r sample.Sample
		if err := s.Read(&r); err != nil {
			t.Fatal(err)
		}
		lost += r.Schedule.Lost
		for _, e := range r.Schedule.Events {
			if e.Syscall == unix.SYS_CLOCK_NANOSLEEP && e.Kind == sample.ThreadOut && r.At.Mono-e.At < stormSleep {
				inTime = true
			}
		}
		events = append(events, r.Schedule.Events...)
	}
}

// totals adds up what a thread did.
func totals(events []sample.ThreadEvent, tid int) (running, ready, blocked, asleep time.Duration, sums int) {
	own := of(events, tid)
	for i, e := range own[1:] {
		before := own[i]
		switch {
		case e.Kind == sample.ThreadSum:
			running, ready, blocked, asleep = running+e.Running, ready+e.Ready, blocked+e.Blocked, asleep+e.Asleep
			sums++
		case e.Kind == sample.ThreadOut && before.Kind != sample.ThreadBegan:
			running += e.At - before.At
		case e.Kind == sample.ThreadIn:
			at := e.At
			if e.Woken != 0 {
				at = e.Woken
				ready += e.At - e.Woken
			}
			switch {
			case before.Kind == sample.ThreadBegan || before.Kind == sample.ThreadSum:
			case before.State == sample.StateReady:
				ready += at - before.At
			case before.State == sample.StateBlocked || before.IOWait:
				blocked += at - before.At
			default:
				asleep += at - before.At
			}
		}
	}
	return running, ready, blocked, asleep, sums
}

func TestStormIsSummed(t *testing.T) {
	o := defaults
	o.jobBudget = 300
	s := opened(t, o)
	f, events, inTime, lost := storm(t, s)
	checkChain(t, events)
	if lost > 0 {
		t.Errorf("got %d lost events, want none", lost)
	}
	if !inTime {
		t.Error("the sleep after the storm was reported when it was over, want it while it lasted")
	}
	for _, tid := range []int{f["ping"], f["pong"]} {
		checkTotals(t, events, tid, 5)
	}
	if perSecond := float64(len(events)) / (stormLength + stormSleep).Seconds(); perSecond > 10*2*300 {
		t.Errorf("got %.0f events a second, want at most twice the budget of %d", perSecond, 10*300)
	}
}

// checkTotals fails if the parts of a thread's life do not add up to it.
func checkTotals(t *testing.T, events []sample.ThreadEvent, tid, wantSums int) {
	t.Helper()
	running, ready, blocked, asleep, sums := totals(events, tid)
	own := of(events, tid)
	life := own[len(own)-1].At - own[0].At
	if got := running + ready + blocked + asleep; got != life {
		t.Errorf("thread %d: got %v (running %v, ready %v, blocked %v, asleep %v), want its life of %v",
			tid, got, running, ready, blocked, asleep, life)
	}
	if life < stormLength || running == 0 || asleep == 0 {
		t.Errorf("thread %d: got %v running and %v asleep of %v, want some of both", tid, running, asleep, life)
	}
	if sums < wantSums {
		t.Errorf("thread %d: got %d sums, want at least %d", tid, sums, wantSums)
	}
}

// A buffer without room loses details, and no time.
func TestLostEventsAreCounted(t *testing.T) {
	o := defaults
	o.ringBytes = 4096
	o.jobBudget, o.allBudget = 1<<20, 1<<20
	s := opened(t, o)
	f, events, _, lost := storm(t, s)
	if lost == 0 {
		t.Error("got no lost event in a buffer of 4096 bytes, want some")
	}
	checkChain(t, events)
	for _, tid := range []int{f["ping"], f["pong"]} {
		checkTotals(t, events, tid, 1)
	}
}
