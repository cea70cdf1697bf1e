//go:build linux && (amd64 || arm64)

package bpf

import (
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/test/fixture"
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

// stormSeen is what a source saw of stormProgram.
type stormSeen struct {
	facts  facts
	events []sample.ThreadEvent
	inTime bool // the long sleep was reported while it lasted
	lost   uint64
}

// storm follows the program and reads as the agent does.
func storm(t *testing.T, s *Source) (seen stormSeen) {
	t.Helper()
	p := fixture.Start(t, "storm")
	if err := s.Follow("job", []int{p.PID()}); err != nil {
		t.Fatal(err)
	}
	defer s.Unfollow("job")
	done := p.Run()
	for {
		select {
		case seen.facts = <-done:
			if seen.facts == nil {
				t.FailNow()
			}
			more, missed := readWithLoss(t, s)
			seen.events, seen.lost = append(seen.events, more...), seen.lost+missed
			return seen
		case <-time.After(20 * time.Millisecond):
		}
		var r sample.Sample
		if err := s.Read(&r); err != nil {
			t.Fatal(err)
		}
		seen.lost += r.Schedule.Lost
		for _, e := range r.Schedule.Events {
			if e.Syscall == unix.SYS_CLOCK_NANOSLEEP && e.Kind == sample.ThreadOut && r.At.Mono-e.At < stormSleep {
				seen.inTime = true
			}
		}
		seen.events = append(seen.events, r.Schedule.Events...)
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

// attempts is how often a storm is measured until it is as it should be. Other programs may take the CPUs of this one,
// so that it makes few events, and those of the reader, so that it is late. What holds at any load is checked each
// time.
const attempts = 5

func TestStormIsSummed(t *testing.T) {
	o := defaults
	o.jobBudget = 300
	var problems []string
	for range attempts {
		if problems = summedStorm(t, o); len(problems) == 0 {
			return
		}
		t.Log(problems)
	}
	t.Errorf("in each of %d measurements; in the last one: %q", attempts, problems)
}

// summedStorm returns what differs in a storm above the budget.
func summedStorm(t *testing.T, o options) (problems []string) {
	t.Helper()
	s := opened(t, o)
	defer func() { _ = s.Close() }()
	seen := storm(t, s)
	checkChain(t, seen.events)
	if seen.lost > 0 {
		problems = append(problems, fmt.Sprintf("%d events are lost, want none", seen.lost))
	}
	if !seen.inTime {
		problems = append(problems, "the sleep after the storm was reported when it was over, want it while it lasted")
	}
	for _, tid := range []int{seen.facts["ping"], seen.facts["pong"]} {
		problems = append(problems, totalProblems(t, seen.events, tid, 5)...)
	}
	if perSecond := float64(len(seen.events)) / (stormLength + stormSleep).Seconds(); perSecond > 10*2*300 {
		problems = append(problems, fmt.Sprintf("%.0f events a second, want at most twice the budget of %d",
			perSecond, 10*300))
	}
	return problems
}

// totalProblems fails if the parts of a thread's life do not add up to it, and returns what else differs.
func totalProblems(t *testing.T, events []sample.ThreadEvent, tid, wantSums int) (problems []string) {
	t.Helper()
	running, ready, blocked, asleep, sums := totals(events, tid)
	own := of(events, tid)
	life := own[len(own)-1].At - own[0].At
	if got := running + ready + blocked + asleep; got != life {
		t.Errorf("thread %d: got %v (running %v, ready %v, blocked %v, asleep %v), want its life of %v",
			tid, got, running, ready, blocked, asleep, life)
	}
	if life < stormLength || running == 0 || asleep == 0 {
		problems = append(problems, fmt.Sprintf("thread %d: %v running and %v asleep of %v, want some of both",
			tid, running, asleep, life))
	}
	if sums < wantSums {
		problems = append(problems, fmt.Sprintf("thread %d: %d sums, want at least %d", tid, sums, wantSums))
	}
	return problems
}

// A buffer without room loses details, and no time.
func TestLostEventsAreCounted(t *testing.T) {
	o := defaults
	o.ringBytes = 4096
	o.jobBudget, o.allBudget = 1<<20, 1<<20
	var problems []string
	for range attempts {
		s := opened(t, o)
		seen := storm(t, s)
		checkChain(t, seen.events)
		problems = nil
		if seen.lost == 0 {
			problems = append(problems, "no event is lost in a buffer of 4096 bytes, want some")
		}
		for _, tid := range []int{seen.facts["ping"], seen.facts["pong"]} {
			problems = append(problems, totalProblems(t, seen.events, tid, 1)...)
		}
		_ = s.Close()
		if len(problems) == 0 {
			return
		}
		t.Log(problems)
	}
	t.Errorf("in each of %d measurements; in the last one: %q", attempts, problems)
}
